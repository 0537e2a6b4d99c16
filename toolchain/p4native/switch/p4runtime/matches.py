"""Converts match keys and actions between P4Runtime's messages and the library's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from p4.v1 import p4runtime_pb2

from p4native.switch import Exact, Lpm, Match, Range, Ternary
from p4native.switch.p4runtime.bytestring import decode, encode
from p4native.switch.p4runtime.p4info import Action, Field, P4InfoIndex, Table
from p4native.switch.p4runtime.status import Code, StatusError, invalid


def decode_match(table: Table, messages: Sequence[p4runtime_pb2.FieldMatch]) -> tuple[Match, ...]:
    """Returns the key in the table's field order. A field that is left out matches anything."""
    return decode_key(f"table {table.name}", table.fields, messages)


def decode_key(
    owner: str, fields: Sequence[Field], messages: Sequence[p4runtime_pb2.FieldMatch]
) -> tuple[Match, ...]:
    """Decodes match fields as `decode_match` does. owner: the name that errors give to the object
    with these fields."""
    given = {}
    known = {field.id for field in fields}
    for message in messages:
        if message.field_id not in known:
            raise invalid(f"{owner}: no match field with id {message.field_id}")
        if message.field_id in given:
            raise invalid(f"{owner}: match field {message.field_id} is given twice")
        given[message.field_id] = message
    return tuple(
        _decode_field(f"{owner}, match field {field.name}", field, given.get(field.id))
        for field in fields
    )


def _decode_field(where: str, field: Field, message: p4runtime_pb2.FieldMatch | None) -> Match:
    if message is None:
        return _wildcard(field, where)
    kind = message.WhichOneof("field_match_type")
    if (kind or "").upper() != field.kind:
        raise invalid(
            f"{where}: {kind or 'nothing'} is given, but the key is matched by {field.kind.lower()}"
        )
    return _DECODERS[field.kind](field, message, where)


def _wildcard(field: Field, where: str) -> Match:
    if field.kind == "EXACT":
        raise invalid(f"{where}: an exact field cannot be omitted")
    if field.kind == "LPM":
        return Lpm(0, 0)
    if field.kind == "RANGE":
        return Range(0, (1 << field.bits) - 1)
    return Ternary(0, 0)


def _decode_exact(field: Field, message: p4runtime_pb2.FieldMatch, where: str) -> Match:
    return Exact(decode(message.exact.value, field.bits, where))


def _decode_lpm(field: Field, message: p4runtime_pb2.FieldMatch, where: str) -> Match:
    value = decode(message.lpm.value, field.bits, where)
    length = message.lpm.prefix_len
    if not 0 < length <= field.bits:
        raise invalid(
            f"{where}: prefix_len is {length}; 1 to {field.bits} are allowed (omit the field for 0)"
        )
    if value & (1 << (field.bits - length)) - 1:
        raise invalid(f"{where}: {value:#x} has bits set beyond prefix_len {length}")
    return Lpm(value, length)


def _decode_ternary(field: Field, message: p4runtime_pb2.FieldMatch, where: str) -> Match:
    value = decode(message.ternary.value, field.bits, where)
    mask = decode(message.ternary.mask, field.bits, f"{where}, mask")
    if not mask:
        raise invalid(f"{where}: the mask is 0 (omit the field to match anything)")
    if value & ~mask:
        raise invalid(f"{where}: value {value:#x} has bits outside mask {mask:#x}")
    return Ternary(value, mask)


def _decode_range(field: Field, message: p4runtime_pb2.FieldMatch, where: str) -> Match:
    low = decode(message.range.low, field.bits, f"{where}, low")
    high = decode(message.range.high, field.bits, f"{where}, high")
    if low > high:
        raise invalid(f"{where}: low {low:#x} is above high {high:#x}")
    if low == 0 and high == (1 << field.bits) - 1:
        raise invalid(f"{where}: the range holds every value (omit the field to match anything)")
    return Range(low, high)


def _decode_optional(field: Field, message: p4runtime_pb2.FieldMatch, where: str) -> Match:
    value = decode(message.optional.value, field.bits, where)
    return Ternary(value, (1 << field.bits) - 1)


_DECODERS: dict[str, Callable[[Field, p4runtime_pb2.FieldMatch, str], Match]] = {
    "EXACT": _decode_exact,
    "LPM": _decode_lpm,
    "TERNARY": _decode_ternary,
    "RANGE": _decode_range,
    "OPTIONAL": _decode_optional,
}


def encode_match(table: Table, key: Sequence[Match]) -> list[p4runtime_pb2.FieldMatch]:
    """Returns the match fields of a message in canonical form: values are as short as possible, and
    fields that match anything are left out."""
    return encode_key(table.fields, key)


def encode_key(fields: Sequence[Field], key: Sequence[Match]) -> list[p4runtime_pb2.FieldMatch]:
    """Returns match fields in the same form as `encode_match`, for any object with match fields."""
    pairs = zip(fields, key, strict=True)
    return [_encode_field(field, match) for field, match in pairs if not _is_wildcard(field, match)]


def _is_wildcard(field: Field, match: Match) -> bool:
    return field.kind != "EXACT" and match == _wildcard(field, "")


def _encode_field(field: Field, match: Match) -> p4runtime_pb2.FieldMatch:
    message = p4runtime_pb2.FieldMatch(field_id=field.id)
    if isinstance(match, Exact):
        message.exact.value = encode(match.value)
    elif isinstance(match, Lpm):
        message.lpm.value = encode(match.value)
        message.lpm.prefix_len = match.prefix_len
    elif isinstance(match, Range):
        message.range.low = encode(match.low)
        message.range.high = encode(match.high)
    elif field.kind == "OPTIONAL":
        message.optional.value = encode(match.value)
    else:
        message.ternary.value = encode(match.value)
        message.ternary.mask = encode(match.mask)
    return message


def decode_action(
    index: P4InfoIndex, table: Table, message: p4runtime_pb2.TableAction, default: bool
) -> tuple[Action, tuple[int, ...]]:
    """Returns the action and its arguments. Refuses an action that the table does not list, or does
    not allow in this place. default: whether the place is the default entry."""
    kind = message.WhichOneof("type")
    if kind is None:
        raise invalid(f"table {table.name}: no action is given")
    if kind != "action":
        raise invalid(f"table {table.name}: {kind} is given, but the table takes actions")
    chosen = message.action
    if chosen.action_id not in table.scopes:
        raise invalid(f"table {table.name}: it has no action with action_id {chosen.action_id:#x}")
    action = index.actions[chosen.action_id]
    forbidden = "TABLE_ONLY" if default else "DEFAULT_ONLY"
    if table.scopes[action.id] == forbidden:
        place = "as default" if default else "in an entry"
        raise StatusError(
            Code.PERMISSION_DENIED, f"table {table.name}: {action.name} may not be used {place}"
        )
    return action, decode_params(action, chosen.params)


def decode_params(
    action: Action, messages: Sequence[p4runtime_pb2.Action.Param]
) -> tuple[int, ...]:
    """Returns an action's arguments in the order of its parameters."""
    given = {message.param_id: message.value for message in messages}
    known = {param.id for param in action.params}
    if len(given) != len(messages):
        raise invalid(f"action {action.name}: a parameter is given twice")
    if extra := sorted(given.keys() - known):
        raise invalid(f"action {action.name}: no parameter with id {extra[0]}")
    values = []
    for param in action.params:
        where = f"action {action.name}, parameter {param.name}"
        if param.id not in given:
            raise invalid(f"{where}: it is missing")
        values.append(decode(given[param.id], param.bits, where))
    return tuple(values)


def encode_action(action: Action, args: Sequence[int]) -> p4runtime_pb2.TableAction:
    """Returns the message for an action with its arguments."""
    message = p4runtime_pb2.TableAction()
    message.action.action_id = action.id
    for param, value in zip(action.params, args, strict=True):
        message.action.params.add(param_id=param.id, value=encode(value))
    return message
