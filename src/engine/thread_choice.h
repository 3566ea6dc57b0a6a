#pragma once

namespace flotilla::engine {

// How many threads compute the next pass. They meet at a barrier after each operation, hundreds of
// times a pass, and wait there busily; where other programs hold the cores, each meeting costs a
// turn of the system's scheduler, and a pass takes a hundred times as long. Such a pass is told by
// its threads having got less processor time than it lasted: then fewer threads are the faster
// ones. More are tried again when the few get all the time that they could, which tells of free
// cores; one such trial in vain is a slow pass, so they get rarer.
class ThreadChoice {
 public:
  static constexpr double kShareMin = 0.7;     // of the processor time that all threads could have
  static constexpr double kFreeShare = 0.9;    // as much says that cores are free
  static constexpr double kWindowMs = 40;      // passes are judged together until they are so long
  static constexpr double kRetryMinMs = 1000;  // of computing, until more threads are tried again
  static constexpr double kRetryMaxMs = 30'000;

  explicit ThreadChoice(int most, int least = 1) : most_(most), least_(least), threads_(most) {}

  int threads() const { return threads_; }
  // A pass with threads() took `wall_ms`, in which this process got `cpu_ms` on all cores together.
  void observe(double wall_ms, double cpu_ms);

 private:
  const int most_;
  const int least_;
  int threads_;
  double wall_ms_ = 0;  // of the passes that are judged together
  double cpu_ms_ = 0;
  double since_fewer_ms_ = 0;
  double retry_ms_ = kRetryMinMs;
  bool trying_ = false;  // more threads than before, for one window
};

}  // namespace flotilla::engine
