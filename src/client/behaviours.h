#pragma once

#include <string>
#include <vector>

#include "client/asker.h"

// What a server of chat answers promises and no single request shows.
namespace flotilla::client {

struct Behaviour {
  const char* id;
  const char* why;
  // Why it does not hold; empty: it does.
  Awaitable<std::string> (*find_breach)(Asker& asker);
};

const std::vector<Behaviour>& behaviours();

}  // namespace flotilla::client
