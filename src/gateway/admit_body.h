#pragma once

#include "base/task.h"
#include "gateway/front.h"
#include "gateway/routes.h"

namespace flotilla::gateway {

// How large a body may be that comes with this head, and who sends it: who has no business here
// sends none. That is answered at once, in the form of its route.
Awaitable<http::BodyPermit> admit_body(Service& service, const Front& front,
                                       http::Exchange& exchange);

}  // namespace flotilla::gateway
