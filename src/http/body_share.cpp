#include "http/body_share.h"

#include <algorithm>

#include "http/forwarded.h"

namespace flotilla::http {

BodyShare::Part::Part(std::map<std::string, std::int64_t>& sums, std::string name)
    : sums_(sums), name_(std::move(name)) {}

BodyShare::Part::~Part() { set(0); }

std::int64_t BodyShare::Part::set(std::int64_t bytes) {
  if (name_.empty() || bytes == bytes_) return 0;
  const auto sum = sums_.try_emplace(name_, 0).first;
  sum->second += bytes - bytes_;
  bytes_ = bytes;
  const std::int64_t now = sum->second;
  if (now == 0) sums_.erase(sum);
  return now;
}

BodyShare::BodyShare(std::shared_ptr<ServerCore> core, const Request& request, std::string key)
    : core_(std::move(core)),
      of_all_(core_->bodies_of, "all"),
      of_network_(core_->bodies_of,
                  request.peer == "unix" ? "" : "network " + network_of(request.peer)),
      of_key_(core_->bodies_of, key.empty() ? "" : "key " + key) {}

bool BodyShare::is_small(std::size_t bytes) const {
  return static_cast<std::int64_t>(bytes) <= core_->options.small_body_bytes;
}

BodyShare::Room BodyShare::expect(std::size_t bytes) {
  const std::int64_t of_key = of_key_.set(static_cast<std::int64_t>(bytes));
  const bool fits = of_key <= core_->options.bodies_max_bytes_of_key;
  return fits || is_small(bytes) ? Room::There : Room::NoneOfKey;
}

BodyShare::Room BodyShare::hold(std::size_t bytes) {
  const auto held = static_cast<std::int64_t>(bytes);
  const ServerOptions& options = core_->options;
  const std::int64_t of_key = of_key_.set(std::max(held, of_key_.bytes()));
  const std::int64_t of_network = of_network_.set(held);
  const std::int64_t of_all = of_all_.set(held);
  if (is_small(bytes)) return Room::There;
  if (of_key > options.bodies_max_bytes_of_key) return Room::NoneOfKey;
  const bool fits =
      of_network <= options.bodies_max_bytes_of_network && of_all <= options.bodies_max_bytes;
  return fits ? Room::There : Room::None;
}

}  // namespace flotilla::http
