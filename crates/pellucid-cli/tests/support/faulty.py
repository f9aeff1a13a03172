"""A store of S3's interface, and before it a proxy that does what a network or a bad store does.

faulty.py TOOL DIRECTORY: TOOL is `moto` or the path of versitygw, DIRECTORY is for its objects. Prints the port of the
proxy and reads rules from standard input, one a line, each answered with `ok`:

  KIND SKIP TIMES ACTION   TIMES requests of that kind after the next SKIP; KIND: begin part complete put get head delete any
  clear               no rule any more
  count KIND          how many there were since the last question; of KIND hang, those that are left without an answer
  objects             the keys in the bucket
  end                 the end
  uploads             how many uploads are neither complete nor given up
  gathered            how many requests have met where a rule gathers them
  port                the port of the store itself

ACTION: 500 (nothing is done), 500-after (it is done), drop and drop-after (no answer at all), half (half an answer),
hang (no answer for two minutes), lose (a part is accepted and gone), ignore (the condition of the request), gather (none of the
rule's requests is answered before all of them are there; after a minute: 500). Lies about what is read: short and long (fewer
and more bytes, and a length that fits), other (other bytes), elsewhere (another range), whole (all of the object), exchanged
(the object is another one by now, and the condition is heeded), unpinned (it is, and the condition is not).
"""
import atexit
import glob
import http.client
import http.server
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

BUCKET = 'backups'
lock = threading.Lock()
rules, counts, lost = [], {}, set()
gathered = 0


def start(tool, directory):
    if tool == 'moto':
        from moto.server import ThreadedMotoServer
        server = ThreadedMotoServer(ip_address='127.0.0.1', port=0)
        server.start()
        return server.get_host_and_port()[1]
    # It takes no socket, so the port is free for a moment, and another program may be faster: then it ends, and the next.
    for _ in range(20):
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        command = [tool, '--access', KEY, '--secret', SECRET, '--port', f'127.0.0.1:{port}', '--region', 'us-east-1',
                   'posix', directory]
        # It ends with this process, which ends with its input.
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(process.kill)
        for _ in range(2400):
            if process.poll() is not None:
                break
            if listens(process, port):
                return port
            time.sleep(0.05)
        process.kill()
    sys.exit('versitygw does not start')


def listens(process, port):
    """Whether it is this process that answers there (proc_pid_net(5))."""
    own = set()
    for descriptor in glob.glob(f'/proc/{process.pid}/fd/*'):
        try:
            own.add(os.readlink(descriptor))
        except OSError:
            pass  # closed meanwhile
    with open('/proc/net/tcp') as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return any(row[1] == f'0100007F:{port:04X}' and row[3] == '0A' and f'socket:[{row[9]}]' in own for row in rows)


def kind(method, path):
    if method == 'POST':
        return 'begin' if re.search(r'[?&]uploads', path) else 'complete'
    if method == 'PUT':
        return 'part' if 'partNumber=' in path else 'put'
    return method.lower()


def action(what):
    with lock:
        counts[what] = counts.get(what, 0) + 1
        for rule in rules:
            if rule[0] not in (what, 'any'):
                continue
            if rule[1] > 0:
                rule[1] -= 1
            elif rule[2] > 0:
                rule[2] -= 1
                return rule[4] if rule[3] == 'gather' else rule[3]
    return None


def gather(barrier):
    global gathered
    try:
        barrier.wait(60)
    except threading.BrokenBarrierError:
        return False
    with lock:
        gathered += 1
    return True


def exchange(path):
    """Puts the same bytes but the last one under the key, so that it is another object of the same length."""
    key = urllib.parse.unquote(path.split('?')[0].split('/', 2)[2])
    content = client.get_object(Bucket=BUCKET, Key=key)['Body'].read()
    client.put_object(Bucket=BUCKET, Key=key, Body=content[:-1] + bytes([content[-1] ^ 1]))


def lie(do, headers, content):
    """What a store might answer with that is not what was asked for."""
    if do == 'short':
        content = content[:-1]
    if do == 'long':
        content += b'x'
    if do == 'other':
        content = bytes(byte ^ 1 for byte in content)
    if do == 'elsewhere':
        move = lambda found: f'bytes {int(found.group(1)) + 1}-{int(found.group(2)) + 1}/'
        headers = [(name, re.sub(r'bytes (\d+)-(\d+)/', move, value)) for name, value in headers]
    return headers, content


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def forward(self, body):
        headers = {name: value for name, value in self.headers.items() if name.lower() != 'connection'}
        connection = http.client.HTTPConnection('127.0.0.1', PORT)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.getheaders(), content

    def answer(self, status, headers, content, send=None):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ('connection', 'transfer-encoding', 'content-length', 'date', 'server'):
                self.send_header(name, value)
        length = next((value for name, value in headers if name.lower() == 'content-length'), None)
        head = self.command == 'HEAD'
        self.send_header('Content-Length', length if head and length else str(len(content)))
        self.end_headers()
        if not head:
            self.wfile.write(content if send is None else content[:send])

    def drop(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def serve(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        what = kind(self.command, self.path)
        do = action(what)
        if do == 'ignore':
            # What is there is as good as not there.
            key = urllib.parse.unquote(self.path.split('?')[0].split('/', 2)[2])
            client.delete_object(Bucket=BUCKET, Key=key)
        # Where requests are signed, nobody can change one: a store that knows its parts says itself that one is missing.
        if what == 'complete' and lost and sys.argv[1] == 'moto':
            # The store has forgotten them.
            for number in lost:
                body = re.sub(rb'<Part>(?:(?!</Part>).)*<PartNumber>%d</PartNumber>.*?</Part>' % number, b'', body)
            del self.headers['Content-Length']
            self.headers['Content-Length'] = str(len(body))
            lost.clear()
        if isinstance(do, threading.Barrier) and not gather(do):
            return self.answer(500, [], b'<Error><Code>InternalError</Code></Error>')
        if do in ('exchanged', 'unpinned'):
            exchange(self.path)
        if do in ('whole', 'unpinned'):
            # Neither is signed by this client.
            del self.headers['Range' if do == 'whole' else 'If-Match']
        if do == 'hang':
            with lock:
                counts['hang'] = counts.get('hang', 0) + 1
            time.sleep(120)
            return self.drop()
        if do == 'drop':
            return self.drop()
        if do == '500':
            return self.answer(500, [], b'<Error><Code>InternalError</Code></Error>')
        if do == 'lose':
            lost.add(int(re.search(r'partNumber=(\d+)', self.path).group(1)))
            return self.answer(200, [('ETag', '"00000000000000000000000000000000"')], b'')
        status, headers, content = self.forward(body)
        if do == 'drop-after':
            return self.drop()
        if do == '500-after':
            return self.answer(500, [], b'<Error><Code>InternalError</Code></Error>')
        if do == 'half' and content:
            self.answer(status, headers, content, len(content) // 2)
            return self.drop()
        headers, content = lie(do, headers, content)
        self.answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


KEY, SECRET = 'x', 'a-secret-that-nobody-may-see'
PORT = start(sys.argv[1], sys.argv[2])
import boto3
client = boto3.client('s3', endpoint_url=f'http://127.0.0.1:{PORT}', region_name='us-east-1', aws_access_key_id=KEY,
                      aws_secret_access_key=SECRET)
client.create_bucket(Bucket=BUCKET)
proxy = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Proxy)
proxy.daemon_threads = True
threading.Thread(target=proxy.serve_forever, daemon=True).start()
print(proxy.server_port, flush=True)
for line in sys.stdin:
    words = line.split()
    said = 'ok'
    if words == ['end']:
        break
    with lock:
        if words == ['clear']:
            rules.clear()
            lost.clear()
        elif words[0] == 'count':
            said = str(sum(counts.values()) if words[1] == 'any' else counts.get(words[1], 0))
            counts.clear()
        elif words == ['objects']:
            said = ' '.join(item['Key'] for item in client.list_objects_v2(Bucket=BUCKET).get('Contents', []))
        elif words == ['uploads']:
            said = str(len(client.list_multipart_uploads(Bucket=BUCKET).get('Uploads', [])))
        elif words == ['port']:
            said = str(PORT)
        elif words == ['gathered']:
            said = str(gathered)
        else:
            times = int(words[2])
            barrier = threading.Barrier(times) if words[3] == 'gather' else None
            rules.append([words[0], int(words[1]), times, words[3], barrier])
    print(said, flush=True)
