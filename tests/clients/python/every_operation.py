"""Calls every operation of the package `water_data` that openapi-python-client made, with its default arguments: without
a form, and in each that it offers.

Prints method and path of each call. WATER_URL and WATER_API_KEY say where.
"""

import os
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import get_args

from water_data import AuthenticatedClient
from water_data.api import default

TYPES = {"csv": "text/csv", "json": "application/json", "ndjson": "application/x-ndjson"}


def choices(operation):
    """Returns the arguments that choose no form, and those that choose each."""
    parameter = signature(operation.sync_detailed).parameters.get("format_")
    forms = get_args(parameter.annotation)[0] if parameter else []
    return [{}, *({"format_": form} for form in forms)]


def call(client, operation, arguments):
    """Calls an operation, checks the answer, and returns its method and path."""
    request = operation._get_kwargs(**arguments)
    method, form = request["method"], str(arguments.get("format_", "json"))
    if form == "json":
        answer = operation.sync_detailed(client=client, **arguments)
        # There is nothing to read in an answer to HEAD.
        read = type(answer.parsed).__module__.startswith("water_data.models.")
        assert method == "head" or read, f"{request}: {answer}"
    else:
        # The generated `sync_detailed` reads JSON only, so the request that it sends is sent here.
        answer = client.get_httpx_client().request(**request)
    assert answer.status_code == 200, f"{request}: {answer.status_code} {answer.content}"
    kind = answer.headers["Content-Type"]
    assert kind.startswith(TYPES[form]), f"{request}: {kind}"
    return f"{method} {request['url']}"


client = AuthenticatedClient(base_url=os.environ["WATER_URL"], token=os.environ["WATER_API_KEY"])
for module in iter_modules(default.__path__):
    operation = import_module(f"{default.__name__}.{module.name}")
    for arguments in choices(operation):
        print(call(client, operation, arguments))
