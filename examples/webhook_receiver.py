"""A merchant's webhook receiver with the standard library alone: verify, tell duplicates, answer at once.

    WEBHOOK_SECRET=… python examples/webhook_receiver.py 8090

Then point the account at it: `cambist account set ACCOUNT_ID webhook_url=http://127.0.0.1:8090/ webhook_secret=-`, and
give it the secret when it asks (plain http and loopback are for test mode only).
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from cambist import NotVerified, verify_signature

LARGEST = 1_000_000


class Receiver(BaseHTTPRequestHandler):
    """Answers within the ten seconds that a receiver has. What takes longer belongs into a queue of your own."""

    seen: set[str] = set()  # noqa: RUF012 - a shop keeps these in its database, beside the order they belong to

    def do_POST(self) -> None:
        """One event. The raw body is what is signed: parse it only after it was verified."""
        size = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(min(size, LARGEST))
        try:
            event_id = verify_signature(dict(self.headers), body, [os.environ["WEBHOOK_SECRET"]], time.time())
        except NotVerified as error:
            self.send_error(400, str(error))
            return
        if event_id not in self.seen:
            self.seen.add(event_id)
            event = json.loads(body)
            print(event["event"], event.get("payment_id"), event.get("status"), flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Stay quiet."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
