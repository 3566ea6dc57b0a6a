#pragma once

#include <string>
#include <vector>

#include "api/chat_seen.h"
#include "base/clock.h"
#include "base/task.h"
#include "http/client.h"

// Chat requests with nothing in them but what OpenAI's API knows, so that any server takes them.
namespace flotilla::client {

struct Question {
  std::string text;
  int max_tokens = 40;
  double temperature = 0;
  int seed = 1;
  bool stream = false;
  std::string more = {};  // further members, each with a comma before it
};

struct Heard {
  api::ChatSeen answer;  // its fault: whatever went wrong, an error status included
  double ms = 0;
};

// When a client goes away.
enum class Leave { BeforeTheAnswer, AtItsHead, Midway, BeforeTheWholeAnswer };

// Asks one server. One executor, one thread; outlives its coroutines.
class Asker {
 public:
  struct Settings {
    std::string model;
    std::string key;  // sent as bearer token where not empty
    Duration limit = std::chrono::seconds(60);
  };
  Asker(Executor executor, http::Client& client, Settings settings, const Clock& clock);

  Awaitable<Heard> ask(Question question);
  // All at the same time; answers in the order of the questions.
  Awaitable<std::vector<Heard>> ask_at_once(std::vector<Question> questions);
  // As many clients ask at the same time and go away; back when all are gone.
  Awaitable<void> ask_and_leave(Question question, int clients, Leave when);

  http::Request chat_request(const Question& question) const;
  // A request with the key and the type of JSON, for cases that have a body of their own.
  http::Request make_request(std::string method, std::string target, std::string body) const;
  Task<http::Response> fetch(http::Request request) const;
  // Waits for the head alone and goes away.
  Task<int> status_of(http::Request request) const;
  const Clock& clock() const { return clock_; }

 private:
  Awaitable<void> leave(Question question, Leave when);

  Executor executor_;
  http::Client& client_;
  Settings settings_;
  const Clock& clock_;
};

}  // namespace flotilla::client
