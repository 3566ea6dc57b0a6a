#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace flotilla {

// The one way into a thread: commands in order, at most `capacity` waiting. Any thread may push;
// one thread takes. Full is an outcome, never a wait.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // false: full or closed; the item was not taken.
  bool try_push(T item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // Whatever is there; empty when nothing is.
  std::vector<T> take_all() {
    const std::lock_guard lock(mutex_);
    return drain();
  }

  // As take_all, but sleeps until something is there, the queue is closed or `limit` is over.
  std::vector<T> wait_all(Duration limit) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, limit, [this] { return closed_ || !items_.empty(); });
    return drain();
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::vector<T> drain() {
    std::vector<T> out(std::make_move_iterator(items_.begin()),
                       std::make_move_iterator(items_.end()));
    items_.clear();
    return out;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace flotilla
