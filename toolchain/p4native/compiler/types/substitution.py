"""Replaces type variables by types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar, cast

from p4native.compiler import ast
from p4native.compiler.types.base import UNKNOWN, Type, TypeVariable
from p4native.compiler.types.compound import (
    Field,
    Header,
    HeaderUnion,
    List,
    Set,
    Stack,
    Struct,
    StructLike,
    StructLiteral,
    Tuple,
)
from p4native.compiler.types.objects import (
    Block,
    Control,
    Extern,
    Function,
    Package,
    ParameterType,
    Parser,
    TypeName,
)

Bindings = Mapping[ast.TypeParameter, Type]
T = TypeVar("T", bound=Type)


def substitute(subject: T, bindings: Bindings) -> T:
    """Returns the type with each type variable that `bindings` names replaced."""
    if not bindings:
        return subject
    return cast(T, _substitute(subject, bindings))


class _AllUnknown(dict[ast.TypeParameter, Type]):
    """Bindings that give every type parameter the type that fits everything."""

    def __bool__(self) -> bool:
        return True

    def get(self, key: object, default: object = None) -> Type:
        return UNKNOWN


def erase(subject: T) -> T:
    """Returns the type with each type variable replaced by the type that fits everything."""
    return substitute(subject, _AllUnknown())


def _substitute(subject: Type, bindings: Bindings) -> Type:
    if isinstance(subject, TypeVariable):
        return bindings.get(subject.declaration, subject)
    rebuild = _REBUILD.get(type(subject))
    return rebuild(subject, bindings) if rebuild else subject


def _all(subjects: tuple[Type, ...], bindings: Bindings) -> tuple[Type, ...]:
    return tuple(_substitute(s, bindings) for s in subjects)


def _fields(subjects: tuple[Field, ...], bindings: Bindings) -> tuple[Field, ...]:
    return tuple(Field(f.name, _substitute(f.type, bindings), f.declaration) for f in subjects)


def substitute_parameters(
    subjects: tuple[ParameterType, ...], bindings: Bindings
) -> tuple[ParameterType, ...]:
    return tuple(replace(p, type=_substitute(p.type, bindings)) for p in subjects)


def _struct_like(subject: StructLike, bindings: Bindings) -> Type:
    if not subject.arguments:
        return subject
    arguments = _all(subject.arguments, bindings)
    return replace(subject, arguments=arguments, fields=_fields(subject.fields, bindings))


def _block(subject: Block, bindings: Bindings) -> Type:
    return replace(
        subject,
        arguments=_all(subject.arguments, bindings),
        parameters=substitute_parameters(subject.parameters, bindings),
        constructor=substitute_parameters(subject.constructor, bindings),
    )


def _package(subject: Package, bindings: Bindings) -> Type:
    return replace(
        subject,
        arguments=_all(subject.arguments, bindings),
        constructor=substitute_parameters(subject.constructor, bindings),
    )


def _function(subject: Function, bindings: Bindings) -> Type:
    return replace(
        subject,
        parameters=substitute_parameters(subject.parameters, bindings),
        result=_substitute(subject.result, bindings),
    )


_REBUILD: dict[type, Callable[..., Type]] = {
    Struct: _struct_like,
    Header: _struct_like,
    HeaderUnion: _struct_like,
    Parser: _block,
    Control: _block,
    Package: _package,
    Function: _function,
    Stack: lambda s, b: Stack(_substitute(s.element, b), s.size),
    Tuple: lambda s, b: Tuple(_all(s.elements, b)),
    List: lambda s, b: List(_substitute(s.element, b)),
    Set: lambda s, b: Set(_substitute(s.element, b)),
    StructLiteral: lambda s, b: StructLiteral(_fields(s.fields, b)),
    Extern: lambda s, b: Extern(s.declaration, _all(s.arguments, b)),
    TypeName: lambda s, b: TypeName(_substitute(s.named, b)),
}
