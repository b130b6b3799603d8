"""An S3 server for one test run: it prints its address and serves until killed.

It serves one request at a time. With threads it would compare ``If-Match`` and write without a lock in between.
"""

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201 - whoever starts it reads this
    server.serve_forever()
