"""Each operation is written once, as what it asks for, and is called on either client:

class Payments(Group[Face]):
    @operation
    def get(self, payment_id: str) -> Request[Payment]: ...

client.payments.get("pay_…")              # Payment
await async_client.payments.get("pay_…")  # Payment
Payments.get.request("pay_…")             # Request[Payment], not sent
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import msgspec

from .errors import FRAMES_HIDDEN
from .model import Page
from .requests import Request

P = ParamSpec("P")
T = TypeVar("T")

__tracebackhide__ = FRAMES_HIDDEN

_LARGEST_PAGE = 100


class Sync(ABC):
    """A client that returns results directly."""

    @abstractmethod
    def send(self, request: Request[T]) -> T:
        """Send a request, with retries. Raises: CambistError."""

    @abstractmethod
    def walk(self, request: Request[Page[T]]) -> Iterator[T]:
        """Yield all elements from this page on. Raises: CambistError."""


class Async(ABC):
    """A client whose results are awaited."""

    @abstractmethod
    async def send(self, request: Request[T]) -> T:
        """Send a request, with retries. Raises: CambistError."""

    @abstractmethod
    def walk(self, request: Request[Page[T]]) -> AsyncIterator[T]:
        """Yield all elements from this page on. Raises: CambistError."""


Face = TypeVar("Face", bound=Sync | Async, covariant=True)


class Group(Generic[Face]):
    """A client's operations on one subject."""

    def __init__(self, face: Face) -> None:
        self._face = face

    @property
    def face(self) -> Face:
        """The client that sends the requests."""
        return self._face


class Operation(Generic[P, T]):
    """One operation of a group; see the module's docstring."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Request[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        """Return the request without sending it."""
        return self._describe(None, *args, **kwargs)

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Sync], owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, group: Group[Async], owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, group: Group[Any] | None, owner: Any) -> Any:
        if group is None:
            return self

        @functools.wraps(self._describe.__get__(group))
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return group.face.send(self.request(*args, **kwargs))

        return call


class Walk(Generic[P, T]):
    """A list operation as an iterator over all elements, page after page."""

    def __init__(self, listing: Operation[P, Page[T]]) -> None:
        self._listing = listing
        self.__doc__ = listing.__doc__

    @overload
    def __get__(self, group: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, group: Group[Sync], owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, group: Group[Async], owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, group: Group[Any] | None, owner: Any) -> Any:
        if group is None:
            return self

        @functools.wraps(self._listing.__get__(group, owner))
        def walk(*args: P.args, **kwargs: P.kwargs) -> Any:
            return group.face.walk(self._listing.request(*args, **kwargs))

        return walk


def operation(describe: Callable[Concatenate[Any, P], Request[T]]) -> Operation[P, T]:
    """Turn a method that describes a request into an operation."""
    return Operation(describe)


def walk(listing: Operation[P, Page[T]]) -> Walk[P, T]:
    """Turn a list operation into an iterator over all elements."""
    return Walk(listing)


class Walker(Generic[T]):
    """Paging logic without network: send `request`, pass the page to `take`, and repeat until `request` is None.

    Lists are newest first, so objects created meanwhile push known elements onto later pages; known ids are skipped.
    An object that leaves a filtered list meanwhile (a payment that is no longer pending) pulls others onto pages
    already read: when the total falls, the walk goes back by as many elements.
    """

    def __init__(self, request: Request[Page[T]]) -> None:
        query = {"per_page": str(_LARGEST_PAGE), **request.query}
        self.request: Request[Page[T]] | None = msgspec.structs.replace(request, query=query)
        self._seen: set[str] = set()
        self._first = int(query.get("page", 1))
        self._total: int | None = None

    def take(self, page: Page[T]) -> list[T]:
        """Return the new elements of a page."""
        if self.request is not None:
            following = self._following(page)
            query = {**self.request.query, "page": str(following)}
            self.request = None if following is None else msgspec.structs.replace(self.request, query=query)
        return [each for each in page.data if self._is_new(each)]

    def _following(self, page: Page[T]) -> int | None:
        """Return the number of the next page, or None at the end."""
        at, per_page, total = page.pagination.page, page.pagination.per_page, page.pagination.total
        gone, self._total = (self._total or 0) - total, total
        if gone > 0 and at > self._first and self._seen:  # without ids the known elements would appear twice
            return max(self._first, (at - 1) - (gone - 1) // per_page)
        return None if page.is_last else at + 1

    def _is_new(self, element: T) -> bool:
        name = getattr(element, "id", None)
        if name is None:
            return True
        is_new = name not in self._seen
        self._seen.add(name)
        return is_new
