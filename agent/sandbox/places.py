"""The places that the standard bounds name, as data: caches of package managers, secrets, doors to other programs.

What is made of them is the business of `standard`; `docs/sandbox.md` tells people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A folder that a tool fills with what it downloads or builds; no shell and no editor runs any of it by itself."""

    tool: str
    """The folder is made where it is missing if this program is installed."""
    folder: str
    """Below the base."""
    base: Literal["home", "cache", "data"] = "home"
    """The home folder, or what `XDG_CACHE_HOME` or `XDG_DATA_HOME` name."""
    variable: str = ""
    """If set, it names the base instead."""
    below: str = ""
    """What of the folder is open, if not all of it."""


CACHES = (
    Cache(tool="pip", base="cache", folder="pip", variable="PIP_CACHE_DIR"),
    Cache(tool="uv", base="cache", folder="uv", variable="UV_CACHE_DIR"),
    Cache(tool="poetry", base="cache", folder="pypoetry", variable="POETRY_CACHE_DIR", below="cache"),
    Cache(tool="poetry", base="cache", folder="pypoetry", variable="POETRY_CACHE_DIR", below="artifacts"),
    Cache(tool="npm", folder=".npm", variable="npm_config_cache", below="_cacache"),
    Cache(tool="npm", folder=".npm", variable="npm_config_cache", below="_logs"),
    Cache(tool="node-gyp", base="cache", folder="node-gyp"),
    Cache(tool="yarn", base="cache", folder="yarn", variable="YARN_CACHE_FOLDER"),
    Cache(tool="yarn", folder=".yarn", below="berry/cache"),
    Cache(tool="pnpm", base="data", folder="pnpm", below="store"),
    Cache(tool="pnpm", base="cache", folder="pnpm"),
    Cache(tool="bun", folder=".bun", below="install/cache"),
    Cache(tool="deno", base="cache", folder="deno", variable="DENO_DIR"),
    Cache(tool="cargo", folder=".cargo", variable="CARGO_HOME", below="registry"),
    Cache(tool="cargo", folder=".cargo", variable="CARGO_HOME", below="git"),
    Cache(tool="go", folder="go/pkg/mod", variable="GOMODCACHE"),
    Cache(tool="go", folder="go/pkg/sumdb"),
    Cache(tool="go", base="cache", folder="go-build", variable="GOCACHE"),
    Cache(tool="mvn", folder=".m2", below="repository"),
    Cache(tool="gradle", folder=".gradle", variable="GRADLE_USER_HOME", below="caches"),
    Cache(tool="gradle", folder=".gradle", variable="GRADLE_USER_HOME", below="daemon"),
    Cache(tool="gradle", folder=".gradle", variable="GRADLE_USER_HOME", below="native"),
    Cache(tool="dotnet", folder=".nuget", below="packages"),
    Cache(tool="dotnet", base="data", folder="NuGet"),
    Cache(tool="composer", base="cache", folder="composer", variable="COMPOSER_CACHE_DIR"),
    Cache(tool="ccache", base="cache", folder="ccache", variable="CCACHE_DIR"),
    Cache(tool="sccache", base="cache", folder="sccache", variable="SCCACHE_DIR"),
    Cache(tool="zig", base="cache", folder="zig"),
)

HIDDEN_AT_HOME = (
    *"""
.ssh .gnupg .pki .password-store .netrc .git-credentials .pypirc .pgpass .my.cnf .mylogin.cnf .vault-token
.aws .azure .kube .oci .s3cfg .boto .fly .terraform.d/credentials.tfrc.json .terraformrc .docker/config.json
.cargo/credentials .cargo/credentials.toml .gem/credentials .composer/auth.json .m2/settings-security.xml
.huggingface .cache/huggingface/token .codex/auth.json .claude/.credentials.json .gemini/oauth_creds.json
.local/share/opencode/auth.json .config/github-copilot
.bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .sqlite_history
.local/share/fish/fish_history .lesshst
.mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge
.config/vivaldi .config/opera .var/app/org.mozilla.firefox .var/app/com.google.Chrome snap/firefox snap/chromium
.config/Slack .config/discord .config/Signal .config/1Password .config/Bitwarden .config/keepassxc
.local/share/keyrings .local/share/kwalletd .bitcoin .ethereum .electrum .config/solana .Xauthority .ICEauthority
.config/gcloud .config/gh .config/hub .config/glab-cli .config/git/credentials .config/rclone .config/doctl .config/op
.config/composer/auth.json .config/sops .config/age
Library/Keychains Library/Cookies Library/Safari Library/Mail Library/Messages
""".split(),
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
)
"""Keys, logins, password stores, browser profiles, and what was typed into shells."""

OBEYED_AT_HOME = """
.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .inputrc
.config/fish .config/autostart .config/systemd .config/environment.d .pam_environment .xprofile .xinitrc .xsessionrc
.gitconfig .config/git .local/bin bin .cargo/bin .npmrc .pypirc .config/pip .vimrc .vim .config/nvim .emacs .emacs.d
.tmux.conf .config/tmux .envrc Library/LaunchAgents
""".split()
"""What starts by itself, or says what is to be started."""

HIDDEN_IN_SYSTEM = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/run/user", "/run/secrets", "/var/run/secrets"),
)

HIDDEN_BY_VARIABLE = (
    *("XDG_RUNTIME_DIR", "GNUPGHOME", "KUBECONFIG", "DOCKER_CONFIG", "XAUTHORITY", "HISTFILE", "PGPASSFILE"),
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG", "GH_CONFIG_DIR", "PASSWORD_STORE_DIR", "HF_TOKEN_PATH", "NETRC"),
)
"""Variables that say where such things lie, if not in their usual place."""

SERVICE_SOCKETS = (
    *("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock"),
    *("/run/buildkit/buildkitd.sock", "/run/libvirt/libvirt-sock", "/run/snapd.socket", "/run/dbus/system_bus_socket"),
    *("/var/lib/lxd/unix.socket", "/var/lib/incus/unix.socket", "/var/snap/lxd/common/lxd/unix.socket"),
)
"""Doors to services that act for whoever knocks. The kernel names all that were opened on this machine, but in a
container not those that were put there from outside."""
HOME_SOCKETS = (".docker/run/docker.sock", ".colima/default/docker.sock", ".rd/docker.sock", ".lima")

DOOR_VARIABLES = (
    *("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO"),
    *("DOCKER_HOST", "CONTAINER_HOST", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "PULSE_SERVER"),
    *(
        "TMUX",
        "STY",
        "ZELLIJ",
        "NVIM",
        "KITTY_LISTEN_ON",
        "WEZTERM_UNIX_SOCKET",
        "ALACRITTY_SOCKET",
        "EMACS_SOCKET_NAME",
    ),
    *("VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "VSCODE_GIT_ASKPASS_NODE", "GNOME_KEYRING_CONTROL", "SSH_TTY"),
)
"""Variables that lead to programs outside; they are taken out of a command's environment."""

WITHOUT_RETRIES = {
    "PIP_RETRIES": "1",  # without any it does not say what was wrong
    "npm_config_fetch_retries": "0",
    "npm_config_update_notifier": "false",
    "CARGO_NET_RETRY": "0",
    "UV_HTTP_RETRIES": "0",
}
"""Where there is no network, further attempts only take minutes."""
