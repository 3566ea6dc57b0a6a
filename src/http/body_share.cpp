#include "http/body_share.h"

#include "http/forwarded.h"

namespace flotilla::http {

BodyShare::BodyShare(std::shared_ptr<ServerCore> core, const Request& request)
    : core_(std::move(core)), of_(request.peer == "unix" ? "" : network_of(request.peer)) {}

BodyShare::~BodyShare() {
  core_->bodies_bytes -= bytes_;
  if (of_.empty()) return;
  const auto mine = core_->bodies_of.find(of_);
  if (mine != core_->bodies_of.end() && (mine->second -= bytes_) == 0) core_->bodies_of.erase(mine);
}

bool BodyShare::set(std::size_t bytes) {
  const ServerOptions& options = core_->options;
  const std::int64_t more = static_cast<std::int64_t>(bytes) - bytes_;
  bytes_ += more;
  core_->bodies_bytes += more;
  bool fits = core_->bodies_bytes <= options.bodies_max_bytes;
  if (!of_.empty() && bytes_ > 0)
    fits = (core_->bodies_of[of_] += more) <= options.bodies_max_bytes_of_network && fits;
  return fits || bytes_ <= options.small_body_bytes;
}

}  // namespace flotilla::http
