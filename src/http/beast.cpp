// The one unit that compiles Beast; head.cpp sees declarations (BOOST_BEAST_SEPARATE_COMPILATION).
#pragma GCC diagnostic ignored "-Wconversion"
#include <boost/beast/src.hpp>
