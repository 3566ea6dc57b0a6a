// The one unit that compiles Asio; everyone else sees declarations
// (BOOST_ASIO_SEPARATE_COMPILATION).
#pragma GCC diagnostic ignored "-Wconversion"
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
