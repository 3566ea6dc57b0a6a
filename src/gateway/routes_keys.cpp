#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/keys.h"
#include "base/random.h"
#include "gateway/routes.h"

// API keys: made, listed, changed and taken back by the operator.
namespace flotilla::gateway {
namespace {

using http::PathParams;

Error no_key(const std::string& id) {
  return Error{.code = Code::NotFound, .message = fmt::format("there is no API key \"{}\"", id)};
}

Result<void> check_name(const KeyRing& keys, const std::string& name, const std::string& id) {
  const KeyRing::Key* other = keys.find_name(name);
  if (other == nullptr || other->id == id) return {};
  return fail(
      Error{.code = Code::Conflict,
            .message = fmt::format("API key {} has the name \"{}\" already", other->id, name),
            .param = "name"});
}

api::KeyShown shown(const KeyRing::Key& key) {
  return {.id = key.id, .spec = key.spec, .created_unix_s = key.created_unix_s};
}

// Marks that a key's id and name are being written, for as long as it lives: what was looked up
// before the write holds after it. A key that is taken back does not come back by a change that was
// under way, nor does one name go to two.
class UnderWay {
 public:
  explicit UnderWay(std::set<std::string>& marks) : marks_(marks) {}
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() {
    for (const std::string& mark : own_) marks_.erase(mark);
  }
  Result<void> id(const std::string& id) { return add("id " + id, "API key " + id); }
  Result<void> name(const std::string& name) {
    return add("name " + name, fmt::format("an API key of the name \"{}\"", name));
  }

 private:
  Result<void> add(std::string mark, const std::string& what) {
    if (!marks_.insert(mark).second)
      return fail(Code::Conflict, what + " is being changed just now; try again");
    own_.push_back(std::move(mark));
    return {};
  }

  std::set<std::string>& marks_;
  std::vector<std::string> own_;
};

// On disk first: what is shown as there is there after a restart.
Task<http::Response> write_key(Service& service, KeyRing::Key key, std::string secret, int status) {
  store::StoredKey stored;
  stored.id = key.id;
  stored.hash = key.hash;
  stored.body = api::to_json(key.spec);
  stored.created_unix_s = key.created_unix_s;
  auto write = status == 201 ? service.control.store_key(std::move(stored))
                             : service.control.change_key(std::move(stored));
  const auto written = co_await std::move(write);
  if (!written) co_return fail(written.error());
  const std::string body = api::key_json(shown(key), secret);
  service.keys.put(std::move(key));
  co_return http::json_response(status, body);
}

Task<http::Response> make_key(Service& service, http::Request request, PathParams) {
  auto spec = api::parse_key_spec(request.body);
  if (!spec) co_return fail(spec.error());
  if (auto free = check_name(service.keys, spec->name, ""); !free) co_return fail(free.error());
  UnderWay mark(service.keys_under_way);
  if (auto may = mark.name(spec->name); !may) co_return fail(may.error());
  std::string secret = make_secret();
  KeyRing::Key key;
  key.id = "key-" + random_hex(4);
  key.hash = hash_of_secret(secret);
  key.spec = std::move(*spec);
  key.created_unix_s = service.clock.unix_ms() / 1000;
  co_return co_await write_key(service, std::move(key), std::move(secret), 201);
}

Task<http::Response> change_key(Service& service, http::Request request, PathParams params) {
  const std::string id = params["id"];
  auto spec = api::parse_key_spec(request.body);
  if (!spec) co_return fail(spec.error());
  const KeyRing::Key* known = service.keys.find(id);
  if (known == nullptr) co_return fail(no_key(id));
  if (auto free = check_name(service.keys, spec->name, id); !free) co_return fail(free.error());
  UnderWay mark(service.keys_under_way);
  if (auto may = mark.id(id); !may) co_return fail(may.error());
  if (auto may = mark.name(spec->name); !may) co_return fail(may.error());
  KeyRing::Key key = *known;
  key.spec = std::move(*spec);
  std::string none;
  co_return co_await write_key(service, std::move(key), std::move(none), 200);
}

Task<http::Response> list_keys(Service& service, http::Request, PathParams) {
  co_return http::json_response(200, api::keys_json(service.keys.list()));
}

Task<http::Response> delete_key(Service& service, http::Request, PathParams params) {
  const std::string id = params["id"];
  if (service.keys.find(id) == nullptr) co_return fail(no_key(id));
  UnderWay mark(service.keys_under_way);
  if (auto may = mark.id(id); !may) co_return fail(may.error());
  const auto written = co_await service.control.delete_key(id);
  if (!written) co_return fail(written.error());
  service.keys.erase(id);
  http::Response response;
  response.status = 204;
  co_return response;
}

}  // namespace

Result<void> read_stored_keys(const Control& control, KeyRing& keys) {
  const auto stored = control.keys();
  if (!stored) return fail(stored.error());
  for (const store::StoredKey& one : *stored) {
    auto spec = api::parse_key_spec(one.body);
    if (!spec) {
      return fail(Code::Internal,
                  fmt::format("API key {} in the store: {}", one.id, spec.error().message));
    }
    keys.put({.id = one.id,
              .hash = one.hash,
              .spec = std::move(*spec),
              .created_unix_s = one.created_unix_s});
  }
  return {};
}

void add_key_routes(http::Router& router, Service& service) {
  add_admin_route(router, service, "GET", "/admin/keys", list_keys);
  add_admin_route(router, service, "POST", "/admin/keys", make_key);
  add_admin_route(router, service, "PUT", "/admin/keys/{id}", change_key);
  add_admin_route(router, service, "DELETE", "/admin/keys/{id}", delete_key);
}

}  // namespace flotilla::gateway
