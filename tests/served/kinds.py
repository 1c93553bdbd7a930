"""The servers of the matrix: a shell script each, for `linklab exec --server`.

A script finds the file to serve and a directory for uploads in `root`, below the directory in which
it runs, and the server's address, port, certificate and key in the environment. It ends in the
server, which stays in the foreground.
"""

from dataclasses import dataclass

BEGIN = """\
#!/bin/sh
set -e
PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
cd "$(mktemp -d)"
mkdir -p root/put temporary
cp -p "$LINKLAB_DIRECTORY/{payload}" root
chmod -R a+rwX .
"""

_NGINX_TEMPORARY = "".join(
    f"  {name}_temp_path temporary/{name};\n"
    for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)


@dataclass(frozen=True)
class Server:
    """Describes a server by a script after `BEGIN`, and what the matrix can expect. `programs` are
    Debian's packages by program. `encrypted` is False if the URL is http, `ranges` if it serves
    none, `puts` if it stores nothing."""

    script: str
    programs: dict[str, str]
    encrypted: bool = True
    ranges: bool = True
    puts: bool = False
    cold: bool = False
    """Each client is the first to request its file."""
    path: str = ""
    """The directory of the file and of uploads."""


def _nginx(listen: str, inside: str, more: str = "", http: str = "") -> str:
    """Returns the configuration of nginx with one server. `http` and `more` are lines beside and in
    it."""
    return f"""\
cat > nginx.conf <<END
daemon off; user root; pid nginx.pid; error_log stderr; worker_processes 1;
events {{}}
http {{
  access_log off; client_max_body_size 0; default_type application/octet-stream;
{_NGINX_TEMPORARY}{http}
  server {{
    listen {listen};
    ssl_certificate $LINKLAB_CERTIFICATE;
    ssl_certificate_key $LINKLAB_KEY;
    {more}
    location / {{ {inside} }}
  }}
}}
END
exec nginx -p "$PWD" -c "$PWD/nginx.conf"
"""


_TLS = "$LINKLAB_ADDRESS:$LINKLAB_PORT ssl"
_FILES = "root $PWD/root; dav_methods PUT DELETE MOVE;"
_BEHIND = (
    "  server {{ listen 127.0.0.1:8081; location / {{ root $PWD/root; {0} }} }}\n"
    "  proxy_cache_path $PWD/temporary/cache keys_zone=cache:1m;\n"
)
_CACHE = "proxy_pass http://127.0.0.1:8081; proxy_cache cache; proxy_cache_valid 200 206 1h;"

_NGINX_BEHIND = f"""\
cat > behind.conf <<END
user root; pid behind.pid; error_log stderr; worker_processes 1;
events {{}}
http {{
  access_log off; client_max_body_size 0; default_type application/octet-stream;
{_NGINX_TEMPORARY}
  server {{ listen 127.0.0.1:8081; location / {{ {_FILES} }} }}
}}
END
nginx -p "$PWD" -c "$PWD/behind.conf"
"""

_HAPROXY = """\
cat "$LINKLAB_CERTIFICATE" "$LINKLAB_KEY" > both.pem
cat > haproxy.cfg <<END
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
frontend front
  bind $LINKLAB_ADDRESS:$LINKLAB_PORT ssl crt $PWD/both.pem alpn h2,http/1.1
  default_backend files
backend files
  server files 127.0.0.1:8081
END
exec haproxy -db -f haproxy.cfg
"""
"""Gets only, as for WsgiDAV and S3 behind nginx. With uploads through these, virtual time stood
still."""

_NGINX_BEFORE = _nginx(
    f"{_TLS} http2",
    "proxy_pass http://127.0.0.1:8080; proxy_request_buffering off; proxy_http_version 1.1;",
    "ssl_protocols TLSv1.3;",
)
"""Adds TLS and HTTP/2 in front of servers that have neither."""

SERVERS: dict[str, Server] = {
    "nginx": Server(_nginx(_TLS, _FILES), {"nginx": "nginx"}, puts=True),
    "nginx-http2": Server(
        _nginx(f"{_TLS} http2", _FILES, "ssl_protocols TLSv1.3;"), {"nginx": "nginx"}, puts=True
    ),
    "nginx-cache": Server(
        _nginx(_TLS, _CACHE, http=_BEHIND.format("limit_rate 4m;")),
        {"nginx": "nginx"},
        ranges=False,
        cold=True,
    ),
    "nginx-slice": Server(
        _nginx(
            _TLS,
            f"slice 1m; proxy_set_header Range \\$slice_range; {_CACHE} proxy_cache_key \\$request_uri\\$slice_range;",
            http=_BEHIND.format(""),
        ),
        {"nginx": "nginx"},
        cold=True,
    ),
    "nginx-gzip": Server(
        _nginx(_TLS, f"gzip on; gzip_types *; gzip_min_length 1; {_FILES}"), {"nginx": "nginx"}
    ),
    "apache": Server(
        """\
cat > apache.conf <<END
ServerRoot $PWD
ServerName server
PidFile apache.pid
User www-data
Group www-data
Listen $LINKLAB_ADDRESS:$LINKLAB_PORT
ErrorLog /dev/stderr
$(for one in mpm_event:mpm_event authz_core:authz_core ssl:ssl http2:http2 dav:dav dav_fs:dav_fs \\
  setenvif:setenvif; do
  echo "LoadModule ${one%:*}_module /usr/lib/apache2/modules/mod_${one#*:}.so"; done)
DavLockDB $PWD/temporary/lock
Protocols h2 http/1.1
SSLEngine on
SSLCertificateFile $LINKLAB_CERTIFICATE
SSLCertificateKeyFile $LINKLAB_KEY
DocumentRoot $PWD/root
<Directory $PWD/root>
  Dav On
</Directory>
END
exec apache2 -D FOREGROUND -d "$PWD" -f "$PWD/apache.conf"
""",
        {"apache2": "apache2"},
        puts=True,
    ),
    "lighttpd": Server(
        """\
cat > lighttpd.conf <<END
server.modules = ("mod_openssl", "mod_webdav")
server.document-root = "$PWD/root"
server.bind = "$LINKLAB_ADDRESS"
server.port = $LINKLAB_PORT
server.upload-dirs = ("$PWD/temporary")
mimetype.assign = ("" => "application/octet-stream")
ssl.engine = "enable"
ssl.pemfile = "$LINKLAB_CERTIFICATE"
ssl.privkey = "$LINKLAB_KEY"
webdav.activate = "enable"
END
exec lighttpd -D -f lighttpd.conf
""",
        {"lighttpd": "lighttpd"},
        puts=True,
    ),
    "caddy": Server(
        """\
cat > Caddyfile <<END
{
  admin off
  auto_https off
  storage file_system $PWD/temporary
}
https://$LINKLAB_ADDRESS:$LINKLAB_PORT {
  tls $LINKLAB_CERTIFICATE $LINKLAB_KEY
  root * $PWD/root
  file_server
}
END
XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD exec caddy run --config Caddyfile --adapter caddyfile
""",
        {"caddy": "caddy"},
    ),
    "h2o": Server(
        """\
cat > h2o.conf <<END
listen:
  host: $LINKLAB_ADDRESS
  port: $LINKLAB_PORT
  ssl: {certificate-file: $LINKLAB_CERTIFICATE, key-file: $LINKLAB_KEY}
hosts:
  default:
    paths:
      /: {file.dir: $PWD/root}
user: root
END
exec h2o -m worker -c h2o.conf
""",
        {"h2o": "h2o"},
    ),
    "haproxy": Server(_NGINX_BEHIND + _HAPROXY, {"haproxy": "haproxy", "nginx": "nginx"}),
    "varnish": Server(
        _NGINX_BEHIND
        + """\
cat > varnish.vcl <<END
vcl 4.1;
backend files { .host = "127.0.0.1"; .port = "8081"; }
END
exec varnishd -F -j none -a "$LINKLAB_ADDRESS:$LINKLAB_PORT" -f "$PWD/varnish.vcl" \\
  -n "$PWD/temporary/varnish" -s malloc,100m -T none
""",
        {"varnishd": "varnish", "nginx": "nginx", "gcc": "gcc"},
        encrypted=False,
        cold=True,
    ),
    "python": Server(
        'cd root; exec python3 -m http.server --bind "$LINKLAB_ADDRESS" "$LINKLAB_PORT"\n',
        {"python3": "python3"},
        encrypted=False,
        ranges=False,
    ),
    "rclone-http": Server(
        'exec rclone serve http --config none --addr "$LINKLAB_ADDRESS:$LINKLAB_PORT"'
        ' --cert "$LINKLAB_CERTIFICATE" --key "$LINKLAB_KEY" root\n',
        {"rclone": "rclone"},
    ),
    "rclone-webdav": Server(
        'exec rclone serve webdav --config none --addr "$LINKLAB_ADDRESS:$LINKLAB_PORT"'
        ' --cert "$LINKLAB_CERTIFICATE" --key "$LINKLAB_KEY" root\n',
        {"rclone": "rclone"},
        puts=True,
    ),
    "wsgidav": Server(
        "wsgidav --no-config --host 127.0.0.1 --port 8080 --root root --auth anonymous -q &\n"
        + _NGINX_BEFORE,
        {"wsgidav": "wsgidav and cheroot of PyPI", "nginx": "nginx"},
    ),
    "s3": Server(
        """\
gofakes3 -backend memory -initialbucket put -host 127.0.0.1:8080 &
until curl -sf -T root/payload* http://127.0.0.1:8080/put/; do sleep 0.1; done
"""
        + _NGINX_BEFORE,
        {"gofakes3": "gofakes3 of Go's modules", "nginx": "nginx"},
        path="put/",
    ),
}
"""Servers by name. Debian's releases differ. These are for 12 and later."""
