"""Servers of keys for a test: key_services.py KIND, where KIND is `kms` or `transit`. Prints the port, and for `kms` a key's id.

kms: moto's AWS KMS. transit: what Vault's documents say of the transit engine's encrypt and decrypt, of a token and of a seal,
for one key; no server of Vault's or OpenBao's can be had as a package. Lines on standard input change it: `seal`, `unseal`,
`token NEW`, `forget` (passes associated data over, as servers before 1.9).
"""

import base64
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

state = {"sealed": False, "token": "s.token-of-the-test", "aad": True}


def transit():
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key = AESGCM(AESGCM.generate_key(256))

    class Transit(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def say(self, code, body):
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if state["sealed"]:
                return self.say(503, {"errors": ["Vault is sealed"]})
            if self.headers["X-Vault-Token"] != state["token"]:
                return self.say(403, {"errors": ["permission denied"]})
            aad = base64.b64decode(body.get("associated_data", "")) if state["aad"] else b""
            if self.path == "/v1/transit/encrypt/pellucid":
                nonce = os.urandom(12)
                sealed = nonce + key.encrypt(nonce, base64.b64decode(body["plaintext"]), aad)
                return self.say(200, {"data": {"ciphertext": "vault:v1:" + base64.b64encode(sealed).decode(), "key_version": 1}})
            if self.path == "/v1/transit/decrypt/pellucid":
                try:
                    sealed = base64.b64decode(body["ciphertext"].removeprefix("vault:v1:"), validate=True)
                    opened = key.decrypt(sealed[:12], sealed[12:], aad)
                except (InvalidTag, ValueError):
                    return self.say(400, {"errors": ["cipher: message authentication failed"]})
                return self.say(200, {"data": {"plaintext": base64.b64encode(opened).decode()}})
            return self.say(404, {"errors": []})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Transit)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)


def kms():
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    client = boto3.client(
        "kms", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
        aws_access_key_id="test", aws_secret_access_key="test",
    )
    key = client.create_key()["KeyMetadata"]["KeyId"]
    client.create_alias(AliasName="alias/pellucid", TargetKeyId=key)
    print(port, key, flush=True)


transit() if sys.argv[1] == "transit" else kms()
for line in sys.stdin:
    words = line.split()
    if words[0] in ("seal", "unseal"):
        state["sealed"] = words[0] == "seal"
    elif words[0] == "token":
        state["token"] = words[1]
    elif words[0] == "forget":
        state["aad"] = False
    print("done", flush=True)
