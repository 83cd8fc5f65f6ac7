"""The three endpoints of a merchant's backend and a page with the button, with Python alone: python3 server.py

Orders are kept in SQLite; the transition of an order is one statement.
"""

import hashlib
import hmac
import json
import os
import re
import sqlite3
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# While a secret is replaced, the one before it signs until the switch.
SECRETS = [os.environ.get("SVC_WEBHOOK_SECRET", "")]
if os.environ.get("SVC_WEBHOOK_SECRET_PREVIOUS"):
    SECRETS.append(os.environ["SVC_WEBHOOK_SECRET_PREVIOUS"])
if not all(re.fullmatch("whsec_.{18,}", secret) for secret in SECRETS):
    raise SystemExit("SVC_WEBHOOK_SECRET is missing or too short to be one: it begins with whsec_")
for name in ["SVC_BASE_URL", "SVC_PUBLISHABLE_KEY", "SVC_CLIENT_ID", "SVC_CLIENT_SECRET"]:
    if not os.environ.get(name):
        raise SystemExit(f"{name} is missing: see .env.example")
BASE_URL = os.environ["SVC_BASE_URL"].rstrip("/")
APPLICATION = re.sub(r"^pk_(test|live)_", "", os.environ["SVC_PUBLISHABLE_KEY"])
PORT = int(os.environ.get("PORT", "3002"))
SHOP = os.environ.get("SHOP_URL", f"http://127.0.0.1:{PORT}")
PRICES = {"livro-receitas": 15000, "cafe-amboim": 6500}
BODY_BYTES_MAX = 65536

# Where payers begin, and where they come back to.
PAGES = ["/", "/success", "/pending", "/cancelled"]
ITEMS_MAX = 50
QUANTITY_MAX = 100
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../page.html")) as file:
    PAGE = file.read()
PAGE = PAGE.replace("{{SVC_BASE_URL}}", BASE_URL)
PAGE = PAGE.replace("{{SVC_PUBLISHABLE_KEY}}", os.environ["SVC_PUBLISHABLE_KEY"])

lock = threading.Lock()
db = sqlite3.connect(os.environ.get("DATABASE", ":memory:"), check_same_thread=False)
db.execute(
    "create table if not exists orders (external_transaction_id text primary key,"
    " status text not null, amount integer not null, reference_number text)"
)

token = {"value": "", "until": 0.0}


def is_refusal(fault):
    """Whether the service has said no. After anything else it may have done what was asked."""
    code = getattr(fault, "code", 0)
    return 400 <= code < 500 and code not in (408, 429)


def why(fault):
    """What the service says about it, if it says anything."""
    try:
        return f"{fault.url}: {json.load(fault)['message']}"
    except Exception:
        return str(fault)


def access_token():
    """Kept until a minute before it expires."""
    if time.monotonic() < token["until"]:
        return token["value"]
    pair = f"{os.environ['SVC_CLIENT_ID']}:{os.environ['SVC_CLIENT_SECRET']}"
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "validity_period": 3600})
    request = urllib.request.Request(f"{BASE_URL}/token", form.encode())
    request.add_header("authorization", "Basic " + b64encode(pair.encode()).decode())
    with urllib.request.urlopen(request, timeout=12) as answer:
        told = json.load(answer)
    token["value"] = told["access_token"]
    token["until"] = time.monotonic() + told.get("expires_in", 3600) - 60
    return token["value"]


def service(path, body=None, again=True):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE_URL + path, data)
    request.add_header("authorization", f"Bearer {access_token()}")
    request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=12) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as refused:
        if refused.code != 401 or not again:
            raise
        token["until"] = 0.0
        return service(path, body, again=False)


def apply(data):
    """Only a pending order moves, only to its end, and so only once."""
    order, status = data["externalTransactionId"], data["paymentStatus"]
    if status not in ("PEN", "CON", "CAN") or read(order) is None:
        print(f"{order}: {status!r} is nothing to us", flush=True)
        return
    if status == "PEN":
        return
    with lock, db:
        moved = db.execute(
            "update orders set status = ? where external_transaction_id = ? and status = 'PEN'"
            " returning amount, reference_number",
            (status, order),
        ).fetchone()
        if moved is None:
            return
        reported = (data["amount"], data["referenceNumber"])
        expected = (moved[0], moved[1] or reported[1])
        if reported != expected:
            # Nothing is sent: a person looks first.
            print(f"{order}: {reported} reported, {expected} expected", flush=True)
            return
        # Here, in the same transaction: queue the fulfilment (CON), or give the stock back (CAN).


def total(items):
    """Ours; whatever the page says about it is not read."""
    if type(items) is not list or not 1 <= len(items) <= ITEMS_MAX:
        raise ValueError("items")
    for item in items:
        # Before it is multiplied: a text times a price is that many texts.
        if type(item["quantity"]) is not int or not 1 <= item["quantity"] <= QUANTITY_MAX:
            raise ValueError("quantity")
    return sum(PRICES[item["id"]] * item["quantity"] for item in items)


def create_order(body):
    try:
        amount = total(json.loads(body)["items"])
    except (ValueError, KeyError, TypeError, RecursionError):
        told = (
            f"items is a list of 1 to {ITEMS_MAX} {{ id, quantity }};"
            f" a quantity is 1 to {QUANTITY_MAX}"
        )
        return 422, {"message": told}
    order = f"order_{uuid.uuid4()}"
    with lock, db:
        db.execute("insert into orders values (?, 'PEN', ?, null)", (order, amount))
    urls = {
        "returnUrl": f"{SHOP}/success",
        "cancelUrl": f"{SHOP}/cancelled",
        "webhookUrl": f"{SHOP}/api/svc/webhook",
    }
    asked = {
        "externalTransactionId": order,
        "clientId": "guest",
        "applicationUUID": APPLICATION,
        "name": "Compra",
        "amount": amount,
        "quantity": 1,
        "additionalInfo": json.dumps(urls),
    }
    try:
        reference = service("/svcpartner/createPaymentOrder", asked)["referenceNumber"]
    except Exception as fault:
        print(f"{order}: {why(fault)}", flush=True)
        if not is_refusal(fault):
            return 502, {"message": "the payment service cannot be reached; try again"}
        # Only now is it sure that nobody can pay it: give the stock back.
        with lock, db:
            db.execute(
                "update orders set status = 'CAN'"
                " where external_transaction_id = ? and status = 'PEN'",
                (order,),
            )
        return 502, {"message": "the payment service does not take this order; the log says why"}
    with lock, db:
        db.execute(
            "update orders set reference_number = ? where external_transaction_id = ?",
            (reference, order),
        )
    return 200, {"referenceNumber": reference, "externalTransactionId": order}


def webhook(body, given):
    # The raw bytes, before any parser; an absent header counts as empty.
    def is_ours(secret):
        expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        # As bytes: compare_digest refuses text that is not ASCII.
        return hmac.compare_digest(expected.encode(), (given or "").encode())

    if not any(map(is_ours, SECRETS)):
        print("a webhook with another signature: is SVC_WEBHOOK_SECRET right?", flush=True)
        return 401, {}
    try:
        told = json.loads(body)
        event, data = told["event"], told.get("data")
        whole = {"externalTransactionId": str, "referenceNumber": str, "amount": int}
        if type(event) is not str:
            raise TypeError("event")
        if event == "payment":
            # The status may be anything: one we do not know changes nothing.
            if "paymentStatus" not in data:
                raise KeyError("paymentStatus")
            if any(type(data[key]) is not kind for key, kind in whole.items()):
                raise TypeError("data")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 422, {}
    if event == "payment":
        apply(data)
    else:
        print(f"{event} is no event we know", flush=True)
    return 200, {"received": True}


def read(order):
    with lock:
        row = db.execute(
            "select external_transaction_id, status, reference_number, amount from orders"
            " where external_transaction_id = ?",
            (order,),
        ).fetchone()
    names = ("externalTransactionId", "status", "referenceNumber", "amount")
    return dict(zip(names, row)) if row else None


def status(order):
    found = read(order)
    if found and found["status"] == "PEN" and found["referenceNumber"]:
        query = urllib.parse.urlencode(
            {"externalTransactionId": order, "applicationUUID": APPLICATION}
        )
        try:
            told = service(f"/svcpartner/paymentByExternalTransaction?{query}")
        except Exception as fault:  # what the service cannot tell now, it tells by its webhook
            print(f"{order}: {why(fault)}", flush=True)
            return 200, found
        apply(told)
    return (200, read(order)) if found else (404, {"message": "there is no such order"})


class Server(ThreadingHTTPServer):
    request_queue_size = 128


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # seconds that a silent caller keeps a thread

    def answer(self, work):
        try:
            code, reply = work()
        except Exception as fault:  # whatever it was, it is not done: a webhook comes again
            print(fault, flush=True)
            code, reply = 503, {"message": "not possible at the moment; try again"}
        is_page = reply is PAGE
        body = (PAGE if is_page else json.dumps(reply)).encode()
        self.send_response(code)
        self.send_header("content-type", "text/html" if is_page else "application/json")
        self.send_header("content-length", str(len(body)))
        if code == 405:
            self.send_header("allow", "POST")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def route(self):
        length = self.headers.get("content-length", "0")
        length = int(length) if length.isdecimal() else BODY_BYTES_MAX + 1
        if length > BODY_BYTES_MAX:
            return self.answer(lambda: (413, {}))
        body = self.rfile.read(length)
        method, path = self.command, self.path.split("?")[0]
        asked = re.fullmatch(r"/api/svc/order/([^/]+)/status", path)
        if path == "/api/svc/webhook" and method != "POST":
            return self.answer(lambda: (405, {}))
        if path == "/api/svc/webhook":
            return self.answer(lambda: webhook(body, self.headers.get("x-svc-content-token")))
        if method == "POST" and path == "/api/svc/create-order":
            return self.answer(lambda: create_order(body))
        if method == "GET" and asked:
            return self.answer(lambda: status(urllib.parse.unquote(asked[1])))
        if method == "GET" and path in PAGES:
            return self.answer(lambda: (200, PAGE))
        return self.answer(lambda: (404, {}))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = route

    def log_message(self, *_):
        pass


server = Server(("127.0.0.1", PORT), Handler)
print(f"listening on {PORT}", flush=True)
server.serve_forever()
