"""What Schemathesis is told of our server (SCHEMATHESIS_HOOKS): what chance alone would hardly name, and that no error of
the server may come that its document does not name."""

import schemathesis

KNOWN = {"c": "local", "alias": "synthetic", "n": "local-1", "node": "local-1"}


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """A model that is there, and in what is only read a cluster and a node that are; answers of a few tokens."""
    if isinstance(case.body, dict):
        if isinstance(case.body.get("model"), str) and case.operation.path.startswith(("/v1/", "/tokenize", "/detokenize")):
            case.body["model"] = KNOWN["alias"]
        for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
            if isinstance(case.body.get(name), int) and case.body[name] > 50:
                case.body[name] = 50
    if case.method.upper() == "GET" and case.path_parameters:
        case.path_parameters.update({name: KNOWN[name] for name in case.path_parameters if name in KNOWN})


@schemathesis.check
def no_undocumented_server_error(ctx, response, case):
    documented = {str(status) for status in case.operation.definition.raw["responses"]}
    if response.status_code >= 500 and str(response.status_code) not in documented:
        raise AssertionError(f"{response.status_code} is not in the document: {response.text[:300]}")
