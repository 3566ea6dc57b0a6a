#pragma once

#include <memory>

#include "engine/chat.h"

namespace flotilla::engine {

// The text tools of the synthetic model (fake_engine.h): a token a byte, turns in the ChatML form.
std::shared_ptr<const Tokenizer> make_fake_tokenizer();
std::shared_ptr<const ChatTemplate> make_fake_chat_template();

}  // namespace flotilla::engine
