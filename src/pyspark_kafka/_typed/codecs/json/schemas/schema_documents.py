"""The documents of a JSON Schema: what each part is called, and where its references lead. Pure.

A document, or a part of it with an `$id`, is a resource: references within it are relative to its address, and
references that begin with `#` stay in it. Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

# 2019-09 and those after it: what is beside a `$ref` applies. Before it means nothing.
NEWEST_DRAFT = 8
_OLD_DRAFT = re.compile(r"/draft-0?([0-9])/")
# What is below these is a value, and no schema.
_VALUES = frozenset({"const", "enum", "default", "examples", "example"})
# What is below these has names of the user's.
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})


class SchemaResource(NamedTuple):
    """A schema with an address of its own.

    Attributes:
        base: its address, without a fragment; empty if it has none.
        root: the schema.
        draft: the number of its draft up to 7; `NEWEST_DRAFT` for 2019-09 and later ones, and if nothing says which.
    """

    base: str
    root: Any
    draft: int

    def enter(self, schema: Any) -> SchemaResource:
        """Return the resource that a part of this one is in: a new one, if the part has an address."""
        if schema is self.root or not isinstance(schema, dict):
            return self
        draft = draft_of(schema, self.draft)
        own = _own_address(schema, draft)
        return self if own is None else SchemaResource(urldefrag(urljoin(self.base, own)).url, schema, draft)


class LostReference(Exception):  # noqa: N818 - no error of its own: who reads the schema makes one with the column
    """A reference that leads nowhere; the text is the end of a sentence."""


class SchemaDocuments:
    """A schema and its references.

    Args:
        root: the schema.
        references: the others, by the names that the registry has for them.

    Raises:
        ValueError: an address is none.
    """

    def __init__(self, root: Any, references: dict[str, Any]) -> None:
        self.root = _resource(root, "", NEWEST_DRAFT)
        self._named: dict[str, SchemaResource] = {}
        # None: several parts have the name.
        self._by_address: dict[str, tuple[Any, SchemaResource] | None] = {}
        self._by_anchor: dict[tuple[int, str], tuple[Any, SchemaResource] | None] = {}
        self._collect(self.root)
        for name, document in references.items():
            address = urljoin(self.root.base, name)
            found = _resource(document, urldefrag(address).url, self.root.draft)
            self._collect(found)
            # By what the registry calls it, also as an address relative to the schema.
            for each in (name, address):
                self._named.setdefault(urldefrag(each).url, found)

    def find(self, reference: str, around: SchemaResource) -> tuple[Any, SchemaResource, str]:
        """Return the target of a reference, its resource, and a key unique to its place.

        Args:
            reference: the value of `$ref`.
            around: the resource that it stands in.

        Raises:
            LostReference: nothing is there, or several parts have the name.
        """
        address, fragment = urldefrag(reference)
        found: Any
        if not address:
            found, resource = around.root, around
        else:
            found, resource = self._at_address(address, around, reference)
        fragment = unquote(fragment)
        if fragment[:1] in ("", "/"):
            found, resource = _at(found, fragment, resource)
        else:
            found, resource = self._anchored(fragment, resource, reference)
        if found is None:
            raise LostReference(f"refers to '{reference[:200]}', where nothing is")
        return found, resource, f"{id(resource.root)}#{id(found)}"

    def _at_address(self, address: str, around: SchemaResource, reference: str) -> tuple[Any, SchemaResource]:
        joined = urldefrag(urljoin(around.base, address)).url
        for each in (joined, address):
            if each in self._named:
                named = self._named[each]
                return named.root, named
            if each in self._by_address:
                found = self._by_address[each]
                if found is None:
                    raise LostReference(f"refers to '{reference[:200]}', which several parts of the schema are called")
                return found
        raise LostReference(
            f"refers to '{reference[:200]}', which is neither in the schema nor among its references; nothing is "
            "fetched"
        )

    def _anchored(self, name: str, resource: SchemaResource, reference: str) -> tuple[Any, SchemaResource]:
        found = self._by_anchor.get((id(resource.root), name), (None, resource))
        if found is None:
            raise LostReference(f"refers to '{reference[:200]}', which several parts of the schema are called")
        return found

    def _collect(self, document: SchemaResource) -> None:
        """Record a document's addresses and anchors."""
        if document.base:
            _note(self._by_address, document.base, (document.root, document))
        left = [(document.root, document)]
        while left:
            schema, around = left.pop()
            if isinstance(schema, list):
                left += [(each, around) for each in schema]
            if not isinstance(schema, dict):
                continue
            resource = around.enter(schema)
            if resource is not around:
                _note(self._by_address, resource.base, (schema, resource))
            elif schema is not document.root:
                # As Jackson writes it, without the name of a draft: a name of the part, and no base.
                for address in _addresses(schema, around):
                    _note(self._by_address, address, (schema, around))
            for name in _anchors(schema):
                _note(self._by_anchor, (id(resource.root), name), (schema, resource))
            for key, value in schema.items():
                if key in _BY_NAME and isinstance(value, dict):
                    left += [(each, resource) for each in value.values()]
                elif key not in _VALUES:
                    left.append((value, resource))


def says_type(schema: Any) -> bool:
    """Whether a schema says anything of a type, and does not only restrict values."""
    saying = {"$ref", "type", "additionalProperties", "oneOf", "anyOf", "enum", "const"}
    return isinstance(schema, dict) and (bool(schema.keys() & saying) or says_members(schema))


def has_types(branches: Any) -> bool:
    """Whether one of the schemas of `oneOf` or `anyOf` says anything of a type."""
    return isinstance(branches, list) and any(map(says_type, branches))


def says_members(schema: Any) -> bool:
    """Whether a schema says more of a type than its name: members, items, alternatives, or a format."""
    if not isinstance(schema, dict):
        return False
    if any(schema.get(name) for name in ("properties", "patternProperties", "items", "prefixItems", "allOf")):
        return True
    others = schema.get("additionalProperties")
    if (isinstance(others, dict) and others) or "$ref" in schema:
        return True
    if schema.keys() & {"format", "contentEncoding", "connect.type"}:
        return "type" in schema
    return has_types(schema.get("oneOf")) or has_types(schema.get("anyOf"))


def _resource(document: Any, base: str, draft: int) -> SchemaResource:
    """Return a document: `id` is its address in every draft."""
    draft = draft_of(document, draft)
    own = document.get("$id", document.get("id")) if isinstance(document, dict) else None
    return SchemaResource(urldefrag(urljoin(base, own)).url if isinstance(own, str) else base, document, draft)


def draft_of(schema: Any, otherwise: int = NEWEST_DRAFT) -> int:
    """Return the draft that a schema says it is of, as `SchemaResource.draft`."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(named, str):
        return otherwise
    found = _OLD_DRAFT.search(named)
    return int(found[1]) if found else NEWEST_DRAFT


def _own_address(schema: dict[str, Any], draft: int) -> str | None:
    """Return the address of a part, if references in it are relative to the address."""
    if draft < NEWEST_DRAFT and "$ref" in schema:
        # What is beside a reference means nothing.
        return None
    own = schema.get("id" if draft < 6 else "$id")
    return own if isinstance(own, str) and urldefrag(own).url else None


def _addresses(schema: dict[str, Any], around: SchemaResource) -> Iterator[str]:
    own = schema.get("id")
    if isinstance(own, str):
        try:
            address = urldefrag(urljoin(around.base, own)).url
        except ValueError:
            # It may be anything else.
            return
        if address and address != around.base:
            yield address


def _anchors(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of a part: `id` in draft 4, `$id` in the next two."""
    for own in (schema.get("$id"), schema.get("id")):
        if isinstance(own, str) and own.startswith("#") and len(own) > 1:
            yield own[1:]
    for own in (schema.get("$anchor"), schema.get("$dynamicAnchor")):
        if isinstance(own, str):
            yield own


def _note(known: dict[Any, Any], key: Any, found: tuple[Any, SchemaResource]) -> None:
    """Record the part with a name; None if several parts have it, because the name is then ambiguous."""
    before = known.setdefault(key, found)
    if before is not None and before[0] is not found[0] and before[0] != found[0]:
        known[key] = None


def _at(document: Any, fragment: str, resource: SchemaResource) -> tuple[Any, SchemaResource]:
    """Return the part at a JSON pointer, None without one; and its resource."""
    found = document
    for part in fragment.split("/")[1:]:
        resource = resource.enter(found)
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) < 10 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None, resource
    return found, resource
