#pragma once

#include "base/result.h"
#include "http/message.h"

namespace flotilla::runner {

// Whether a request may in that came by TCP, where the browser of whoever sits at this machine may
// send what another site's page says: a name in Host that is not localhost may be that site's own
// (DNS rebinding), and what is not JSON needs no leave of ours (a form). By the unix socket all
// may.
Result<void> check_visitor(const http::Request& request);

}  // namespace flotilla::runner
