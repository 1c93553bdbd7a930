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
    """Describes a server by a script after `BEGIN`, and what the matrix can expect. `program` is also
    its Debian package. `encrypted` is False if the URL is http, `puts` if it stores nothing."""

    script: str
    program: str
    encrypted: bool = True
    puts: bool = False


SERVERS: dict[str, Server] = {
    "nginx": Server(
        f"""\
cat > nginx.conf <<END
daemon off; user root; pid nginx.pid; error_log stderr; worker_processes 1;
events {{}}
http {{
  access_log off; client_max_body_size 0; default_type application/octet-stream;
{_NGINX_TEMPORARY}  server {{
    listen $LINKLAB_ADDRESS:$LINKLAB_PORT ssl;
    ssl_certificate $LINKLAB_CERTIFICATE;
    ssl_certificate_key $LINKLAB_KEY;
    location / {{ root $PWD/root; dav_methods PUT DELETE MOVE; }}
  }}
}}
END
exec nginx -p "$PWD" -c "$PWD/nginx.conf"
""",
        "nginx",
        puts=True,
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
        "h2o",
    ),
    "python": Server(
        'cd root; exec python3 -m http.server --bind "$LINKLAB_ADDRESS" "$LINKLAB_PORT"\n',
        "python3",
        encrypted=False,
    ),
}
"""Servers by name."""
