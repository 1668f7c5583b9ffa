"""Maps by which proxies find the cell of a request, from its API key or its host (docs/cells.md "The map")."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from .accounts.accounts import KEY_PREFIXES


class MappedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell as proxies know it."""

    name: str
    servers: tuple[str, ...]
    """Addresses of its API processes, `host:port`."""
    hosts: tuple[str, ...]
    """Names of its public addresses."""
    keys: tuple[str, ...]
    """Its API keys whose prefix names another cell or none. Their accounts moved here."""


def key_prefixes(cell: str) -> tuple[str, ...]:
    """Return the prefixes of keys made in a cell."""
    return tuple(f"{prefix}{cell}_" for prefix in KEY_PREFIXES.values())


def foreign_keys(cell: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that a proxy would not lead to this cell by their prefix, in order."""
    own = key_prefixes(cell)
    return tuple(sorted(key for key in keys if not key.startswith(own)))


def _hosts(cells: Sequence[MappedCell]) -> list[tuple[str, str]]:
    """Return the hosts of one cell each. A host that several cells share names none of them."""
    named = Counter(host for cell in cells for host in cell.hosts)
    return [(host, cell.name) for cell in cells for host in cell.hosts if named[host] == 1]


def nginx_map(cells: Iterable[MappedCell], default: str) -> str:
    """Return the file for nginx: two maps and an upstream for each cell."""
    found = list(cells)
    exact = [f"    {key} {cell.name};" for cell in found for key in cell.keys]
    prefixes = [f"    ~^{prefix} {cell.name};" for cell in found for prefix in key_prefixes(cell.name)]
    hosts = [f"    {host} {name};" for host, name in _hosts(found)]
    upstreams = [
        line
        for cell in found
        for line in (
            f"upstream cambist_{cell.name} {{",
            *(f"    server {server};" for server in cell.servers),
            "    keepalive 32;",
            "}",
        )
    ]
    lines = [
        "# Written by `cambist cell map`, and by each move of an account.",
        "map $http_x_api_key $cambist_cell_of_key {",
        '    default "";',
        *exact,
        *prefixes,
        "}",
        "map $host $cambist_cell_of_host {",
        f"    default {default};",
        *hosts,
        "}",
        "map $cambist_cell_of_key $cambist_cell {",
        "    default $cambist_cell_of_key;",
        '    "" $cambist_cell_of_host;',
        "}",
        *upstreams,
    ]
    return "\n".join(lines) + "\n"


def haproxy_maps(cells: Iterable[MappedCell]) -> Mapping[str, str]:
    """Return the files for HAProxy, by name."""
    found = list(cells)
    keys = [f"{key} {cell.name}" for cell in found for key in cell.keys]
    prefixes = [f"{prefix} {cell.name}" for cell in found for prefix in key_prefixes(cell.name)]
    hosts = [f"{host} {name}" for host, name in _hosts(found)]
    parts = {"cells-keys.map": keys, "cells-prefixes.map": prefixes, "cells-hosts.map": hosts}
    return {name: "".join(f"{line}\n" for line in lines) for name, lines in parts.items()}
