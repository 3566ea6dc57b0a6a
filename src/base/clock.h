#pragma once

#include <chrono>
#include <cstdint>

namespace flotilla {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::steady_clock::time_point;

// Where time comes from. Everything that decides by time takes a Clock&, so that tests and the
// simulator own it; `::now(` elsewhere is refused by tools/tidy.py.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  virtual std::int64_t unix_ms() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant now() const override { return std::chrono::steady_clock::now(); }
  std::int64_t unix_ms() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

// Time that stands still until it is moved.
class ManualClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  std::int64_t unix_ms() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()).count();
  }
  void advance(Duration by) { now_ += by; }

 private:
  Instant now_ = Instant{} + std::chrono::hours(1);
};

inline double to_ms(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
inline double to_s(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace flotilla
