"""Images from GPT-Image-2, or from any server that speaks the same API (paper appendix A.4).

The service has no seed: a picture cannot be made twice. What was paid for is therefore never asked for again
(see :mod:`saber.images.manifest`), and each request is kept in ``images/requests.jsonl`` with its prompt and
its usage.
API: https://developers.openai.com/api/docs/models/gpt-image-2
"""

import base64
import hashlib
import io
import json
import os
import threading
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import openai
import tenacity
from openai.types import ImagesResponse
from PIL import Image, ImageOps

from saber.images.prompt import TEMPLATE, prompt
from saber.images.protocol import BackendUnusable, Refused

PRICE_PER_IMAGE = 0.053  # US dollars at 1024 x 1024, medium, as resellers list it: check before a large run
REFUSALS = "images/refusals.jsonl"
REQUESTS = "images/requests.jsonl"
REFUSED = ("moderation_blocked", "content_policy_violation")
NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached")


def cost_estimate(n_images: int, price_per_image: float = PRICE_PER_IMAGE) -> float:
    """US dollars for ``n_images`` images, without what retries of broken answers add."""
    return n_images * price_per_image


class BadAnswer(RuntimeError):
    """The server said OK but sent no usable picture; worth another try."""


@dataclass
class OpenAIBackend:
    """GPT-Image-2 through the ``openai`` client, several requests at a time.

    Attributes:
        model, quality, request_size: as asked from the server; the picture is scaled to the build's ``size``.
        base_url, api_key: the server; by default the environment's OPENAI_BASE_URL and OPENAI_API_KEY.
        concurrency: requests in flight.
        attempts: tries per image on 429, 5xx, timeouts, lost connections and broken answers.
        timeout: seconds for one try.
        first_wait, longest_wait: seconds of the exponential backoff (with jitter); a ``Retry-After`` of the
            server is honoured up to ``longest_wait``.
        price_per_image, max_cost: US dollars; a build whose estimate is above ``max_cost`` does not start.
        retry_refused: ask again for images that were refused in an earlier run.
    """

    model: str = "gpt-image-2"
    quality: str = "medium"
    request_size: int = 1024
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 8
    attempts: int = 8
    timeout: float = 180.0
    first_wait: float = 1.0
    longest_wait: float = 120.0
    price_per_image: float = PRICE_PER_IMAGE
    max_cost: float = 25.0
    retry_refused: bool = False

    name: ClassVar[str] = "openai"
    pool: ClassVar[str] = "threads"
    seeded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._refused: dict[str, str] = {}
        self._stopped: BackendUnusable | None = None
        self._served = False  # whether any picture of this build was as asked for

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over server, model, quality, size and prompt template (not over the key)."""
        server = self.base_url or os.environ.get("OPENAI_BASE_URL") or ""
        parts = [server.rstrip("/"), self.model, self.quality, self.request_size, TEMPLATE]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @cached_property
    def _client(self) -> openai.OpenAI:
        try:  # retries are ours: the client's own know nothing of broken pictures and wait 8 s at most
            return openai.OpenAI(
                base_url=self.base_url, api_key=self.api_key, timeout=self.timeout, max_retries=0
            )
        except openai.OpenAIError as error:
            raise BackendUnusable(
                "image backend 'openai' has no API key: set OPENAI_API_KEY in the environment (a server of "
                "your own that needs none takes any word), or choose image_backend: sprites"
            ) from error

    def original(self, item) -> Path | None:
        """No file: the picture comes from the server."""
        return None

    def start(self, items: Sequence, size: int, folder: Path) -> None:
        """Print the cost estimate, refuse above ``max_cost``, read the refusals of earlier runs."""
        self._folder, self._stopped, self._served, self._refused = Path(folder), None, False, {}
        path = self._folder / REFUSALS
        if path.exists() and not self.retry_refused:
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    refusal = json.loads(line)
                    self._refused[refusal["request"]] = refusal["reason"]
                except (ValueError, KeyError, TypeError):  # torn by a kill: asked again
                    continue
        n = sum(self._request(item) not in self._refused for item in items)
        cost = cost_estimate(n, self.price_per_image)
        text = f"{self.model}: {n} images x ${self.price_per_image:g} = about ${cost:,.2f}"
        if cost > self.max_cost:
            raise BackendUnusable(
                f"{text}, above max_cost ${self.max_cost:,.2f}: nothing was asked for. "
                f"Raise max_cost, or build fewer questions."
            )
        _ = self._client  # a missing key is told before the first request
        print(f"{text} (limit ${self.max_cost:,.2f})")

    def render(self, item, size: int) -> Image.Image:
        """The picture from the server, ``size`` x ``size``, mirrored where ``item.flipped``."""
        request = self._request(item)
        if request in self._refused:
            raise Refused(f"{self._refused[request]} (in an earlier run; retry_refused=True asks again)")
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=self._wait,
            retry=tenacity.retry_if_exception(_worth_retrying),
            reraise=True,
        )
        try:
            answer, image = retrying(self._ask, prompt(item))
        except openai.APIError as error:
            raise self._explained(error, item, request) from error
        usage = answer.usage.model_dump(exclude_none=True) if answer.usage else None
        self._append(REQUESTS, item, request, prompt=prompt(item), usage=usage)
        if image.width != image.height or image.width < size:
            said = f"the server sent {image.width} x {image.height} pixels, not a square of at least {size}"
            if self._served:
                raise ValueError(said)
            self._stopped = BackendUnusable(f"{said}; stopped before all of them are paid for")
            raise self._stopped
        self._served = True
        if image.width != size:
            image = image.resize((size, size), Image.Resampling.LANCZOS)
        return ImageOps.mirror(image) if item.flipped else image

    def _ask(self, text: str) -> tuple[ImagesResponse, Image.Image]:
        """One request, one decoded RGB picture."""
        if self._stopped:
            raise self._stopped
        size = f"{self.request_size}x{self.request_size}"
        try:
            answer = self._client.images.generate(
                model=self.model, prompt=text, n=1, size=size, quality=self.quality
            )
        except ValueError as error:
            raise BadAnswer(f"the server's answer is not JSON ({error})") from error
        if not isinstance(answer, ImagesResponse) or not isinstance(answer.data, list) or not answer.data:
            raise BadAnswer("the server's answer holds no picture")
        try:
            content = _content(answer.data[0], self.timeout)
            with Image.open(io.BytesIO(content)) as image:
                return answer, image.convert("RGB")
        except (OSError, SyntaxError, ValueError, AttributeError, TypeError) as error:
            raise BadAnswer(f"the server's picture cannot be read ({error})") from error

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Seconds before the next try: backoff with jitter, at least the server's Retry-After."""
        backoff = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)(state)
        response = getattr(state.outcome.exception(), "response", None)
        asked = response.headers.get("retry-after", "") if response is not None else ""
        try:
            return max(backoff, min(float(asked), self.longest_wait))
        except ValueError:  # absent, or a date
            return backoff

    def _explained(self, error: openai.APIError, item, request: str) -> Exception:
        """What an error of the API means for the build."""
        said = f"{type(error).__name__}: {error.message}"
        if _is_refusal(error):
            self._append(REFUSALS, item, request, reason=error.message, prompt=prompt(item))
            return Refused(error.message)
        fatal = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)
        about_all = isinstance(error, openai.BadRequestError) and error.param not in (None, "prompt")
        if isinstance(error, fatal) or error.code in NO_MONEY or about_all:
            self._stopped = BackendUnusable(f"{self.model}: {said}")
            return self._stopped
        return RuntimeError(
            f"{said} (given up after {self.attempts} tries)" if _worth_retrying(error) else said
        )

    def _request(self, item) -> str:
        parts = [self.fingerprint, prompt(item), item.seed]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _append(self, name: str, item, request: str, **fields) -> None:
        if self._folder is None:
            return
        line = json.dumps({"item": item.id, "model": self.model, "request": request, **fields}) + "\n"
        with self._lock, open(self._folder / name, "a", encoding="utf-8", newline="\n") as file:
            file.write(line)


def _is_refusal(error: openai.APIError) -> bool:
    if not isinstance(error, openai.BadRequestError):
        return False
    words = ("content policy", "safety system")
    return error.code in REFUSED or any(w in error.message.lower() for w in words)


def _worth_retrying(error: BaseException) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.code not in NO_MONEY and (
            error.status_code in (408, 409, 429) or error.status_code >= 500
        )
    return isinstance(error, (openai.APIConnectionError, openai.APIResponseValidationError, BadAnswer))


def _content(answer, timeout: float) -> bytes:
    """Bytes of the picture, from the answer itself or from the address it names."""
    if answer.b64_json:
        return base64.b64decode(answer.b64_json, validate=True)
    if not (answer.url or "").startswith(("http://", "https://")):
        raise ValueError("neither b64_json nor a web address")
    with urllib.request.urlopen(answer.url, timeout=timeout) as response:
        return response.read()
