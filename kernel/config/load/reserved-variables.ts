/**
 * Variables that steer a process or its loader and are no secrets: the file becomes the environment of units, which
 * would run foreign code or another home with them.
 */
const reserved = new Set([
  'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'PWD', 'TMPDIR', 'IFS', 'ENV', 'BASH_ENV', 'SHELLOPTS', 'PS4', 'CDPATH', 'GCONV_PATH',
  'LOCPATH', 'HOSTALIASES', 'RESOLV_HOST_CONF', 'MALLOC_CONF', 'GLIBC_TUNABLES', 'NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS',
  'NODE_TLS_REJECT_UNAUTHORIZED', 'NODE_REPL_EXTERNAL_MODULE', 'OPENSSL_CONF', 'OPENSSL_MODULES', 'SSL_CERT_FILE', 'SSL_CERT_DIR',
  'PERL5LIB', 'PERL5OPT', 'RUBYLIB', 'RUBYOPT', 'JAVA_TOOL_OPTIONS', 'DOCKER_HOST', 'CONTAINER_HOST', 'DBUS_SESSION_BUS_ADDRESS',
  'XDG_RUNTIME_DIR', 'NOTIFY_SOCKET', 'LISTEN_FDS', 'LISTEN_PID', 'SVC_HOME'
])
const families = /^(LD_|DYLD_|BASH_FUNC_|PYTHON(PATH|HOME|STARTUP|INSPECT|USERBASE)$)/

/** Whether a name of api.env would change what runs instead of what it may log in to. Pure. */
export function isReservedVariable (name: string): boolean {
  return reserved.has(name.toUpperCase()) || families.test(name.toUpperCase())
}
