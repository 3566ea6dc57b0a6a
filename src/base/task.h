#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/result.h"

// The one place where Asio's types are part of our interfaces.
namespace flotilla {

using Executor = boost::asio::any_io_executor;

template <class T>
using Awaitable = boost::asio::awaitable<T>;

// A coroutine whose expected failures are values.
template <class T>
using Task = boost::asio::awaitable<Result<T>>;

// All I/O is awaited with this: an error is a value, never an exception.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace flotilla
