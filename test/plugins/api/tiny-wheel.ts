import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WHOLE } from '../../whole.js'

/**
 * The smallest package of Python that serves: writes `here` into `$DATA` once it listens, says on `/` what it
 * was told, and ends when it is asked to at `/end`.
 */
const PROGRAM = `
import http.server, json, os, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/end': os._exit(3)
        self.send_response(200); self.end_headers()
        self.wfile.write(json.dumps({'pid': os.getpid(), 'env': dict(os.environ)}).encode())
    def log_message(self, *args): print('asked for', self.path, flush=True)
def main():
    server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Page)
    with open(os.environ['DATA'] + '/here', 'w') as here: here.write(str(os.getpid()))
    server.serve_forever()
`

const WRITER = `
import ensurepip, importlib.util, json, sys, venv, zipfile
folder, program = sys.argv[1:]
info = 'tiny_page-1.2.dist-info'
with zipfile.ZipFile(folder + '/tiny_page-1.2-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('tiny_page.py', program)
    wheel.writestr(info + '/METADATA', 'Metadata-Version: 2.1\\nName: tiny-page\\nVersion: 1.2\\n')
    wheel.writestr(info + '/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + '/entry_points.txt', '[console_scripts]\\ntiny-page = tiny_page:main\\n')
    wheel.writestr(info + '/RECORD', '')
print(json.dumps([sys.version_info[1], sys.executable, importlib.util.find_spec('pip') is not None]))
`

export interface TinyWheel {
  /** Of the Python that is here. */
  readonly minor: number
  /** What `PATH` is to begin with. */
  readonly path: string
}

/**
 * A wheel in a folder for pip's --find-links; null without a Python that has venv. The Python on its path lends an environment
 * the pip of the machine: to unpack and compile one of its own takes two seconds of the processor. The ring of wholes does that.
 */
export function tinyWheel (folder: string): TinyWheel | null {
  try {
    const told = execFileSync('python3', ['-c', WRITER, folder, PROGRAM], { stdio: ['ignore', 'pipe', 'ignore'] }).toString()
    const [minor, python, hasPip] = JSON.parse(told) as [number, string, boolean]
    const usual = process.env.PATH ?? ''
    if (!hasPip || process.env[WHOLE] !== undefined) return { minor, path: usual }
    const bin = join(folder, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, `python3.${minor}`), `#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec ${python} "$@"
${python} -m venv --system-site-packages --without-pip "$3" || exit
printf '#!/bin/sh\\nexec %s/bin/python -m pip "$@"\\n' "$3" > "$3/bin/pip"
chmod +x "$3/bin/pip"
`, { mode: 0o755 })
    return { minor, path: `${bin}:${usual}` }
  } catch {
    return null
  }
}
