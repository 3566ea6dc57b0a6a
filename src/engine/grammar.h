#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace flotilla::engine {

// What an answer may be.
struct GrammarSpec {
  std::string rules;       // GBNF from the rule "root" on; empty: anything
  std::string begun = {};  // text in front of the answer that the rules describe too
  // Where there are any, all is allowed until one of these is written, and the rules hold from its
  // beginning on. A pattern's first group is that beginning, where it has one.
  std::vector<std::string> trigger_words = {};
  std::vector<std::string> trigger_patterns = {};
  // Between these no trigger counts: a model may think about a tool without calling it.
  std::string reasoning_start = {};
  std::vector<std::string> reasoning_ends = {};
  bool by_hand = false;  // a client wrote the rules: they may be of any kind
  // Control tokens that are written in the answer's text; all others end it or are refused.
  std::vector<Token> shown_controls = {};

  bool lazy() const { return !trigger_words.empty() || !trigger_patterns.empty(); }
};

// Where an answer stands in its grammar. One sequence's; one thread at a time.
class Grammar {
 public:
  virtual ~Grammar() = default;

  // May this token come next? Costs a few microseconds.
  virtual bool allows(Token token) const = 0;
  // Sets the logits of all tokens that may not come next to the lowest float. Costs some
  // milliseconds.
  virtual void mask(std::span<float> logits) const = 0;
  // The next token. After one that is not allowed, only an end is.
  virtual void accept(Token token) = 0;
};

// Compiles grammars. Immutable; any thread.
class GrammarMaker {
 public:
  virtual ~GrammarMaker() = default;

  // InvalidArgument: the rules do not parse, repeat themselves without writing anything, or have no
  // "root". May take seconds for large rules.
  virtual Result<std::unique_ptr<Grammar>> make(const GrammarSpec& spec) const = 0;
};

}  // namespace flotilla::engine
