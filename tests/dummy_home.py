"""Makes a typical home directory: files with passwords, keys, tokens, cookies and histories, none
of them real."""

from pathlib import Path

_NAMES = """
.ssh/id_ed25519 .ssh/config .gnupg/private-keys-v1.d/key .pki/nssdb/key4.db .password-store/mail.gpg
.netrc .authinfo .authinfo.gpg .git-credentials .config/git/credentials .config/gh/hosts.yml
.config/glab-cli/config.yml .config/hub .config/github-copilot/hosts.json .copilot/config.json
.config/Code/User/globalStorage/state.vscdb .config/Cursor/User/globalStorage/state.vscdb
.vscode-server/data/Machine/token .continue/config.json .codex/auth.json .gemini/oauth_creds.json
.claude/.credentials.json .claude.json .aws/credentials .azure/msal_token_cache.json
.config/gcloud/credentials.db .config/doctl/config.yaml .config/hcloud/cli.toml .config/linode-cli
.config/rclone/rclone.conf .s3cfg .boto .oci/oci_api_key.pem .kube/config .docker/config.json
.config/containers/auth.json .terraform.d/credentials.tfrc.json .vault-token .fly/config.yml
.config/heroku/credentials .config/netlify/config.json .npmrc .yarnrc.yml .pypirc .config/pip/pip.conf
.config/pypoetry/auth.toml .config/uv/credentials.toml .cargo/credentials.toml .gem/credentials
.bundle/config .m2/settings.xml .gradle/gradle.properties .nuget/NuGet/NuGet.Config .composer/auth.json
.config/composer/auth.json .pgpass .my.cnf .mylogin.cnf .config/huggingface/token
.cache/huggingface/token .config/wireguard/wg0.conf .config/openvpn/client.ovpn
.config/keepassxc/keepassxc.ini Passwords.kdbx Documents/passwords.kdbx .config/Bitwarden/data.json
.config/1Password/settings.json .local/share/keyrings/login.keyring .local/share/kwalletd/wallet.kwl
.mozilla/firefox/x/logins.json .config/google-chrome/Default/Cookies .config/chromium/Default/Cookies
.config/vivaldi/Default/Cookies .config/microsoft-edge/Default/Cookies .config/opera/Cookies
.config/BraveSoftware/Cookies .librewolf/x/logins.json .thunderbird/x/logins.json
snap/firefox/common/.mozilla/firefox/x/logins.json snap/chromium/common/chromium/Default/Cookies
.var/app/org.mozilla.firefox/.mozilla/firefox/x/logins.json
.var/app/com.vivaldi.Vivaldi/config/vivaldi/Default/Cookies .config/Signal/config.json
.config/Slack/Cookies .config/discord/Cookies .local/share/TelegramDesktop/tdata/key_datas
.config/weechat/sec.conf .config/fish/fish_variables .local/share/fish/fish_history
.local/share/atuin/history.db .local/share/atuin/key .bash_history .zsh_history .python_history
.local/state/python_history .psql_history .lesshst .viminfo .local/share/nvim/shada/main.shada
.Xauthority .config/syncthing/key.pem .electrum/wallets/default .bitcoin/wallet.dat
.config/filezilla/sitemanager.xml .config/remmina/x.remmina .config/obs-studio/basic/service.json
.env .config/systemd/user/secret.service
"""

SECRETS = tuple(_NAMES.split())
"""Files in which programs keep secrets: shells, version control, editors, clouds, package managers,
databases, tunnels, password managers, browsers (also of Snap and Flatpak), messengers, histories.
"""


def furnish(home: Path) -> None:
    """Fills a home with these files. Each contains its description."""
    for name in SECRETS:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"secret of {name}\n")
