import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** The smallest package of Python that serves: says on `/` what it was told, and ends when it is asked to at `/end`. */
const PROGRAM = `
import http.server, json, os, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/end': os._exit(3)
        self.send_response(200); self.end_headers()
        self.wfile.write(json.dumps({'pid': os.getpid(), 'env': dict(os.environ)}).encode())
    def log_message(self, *args): print('asked for', self.path, flush=True)
def main(): http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Page).serve_forever()
`

const WRITER = `
import sys, zipfile
folder, program = sys.argv[1:]
info = 'tiny_page-1.2.dist-info'
with zipfile.ZipFile(folder + '/tiny_page-1.2-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('tiny_page.py', program)
    wheel.writestr(info + '/METADATA', 'Metadata-Version: 2.1\\nName: tiny-page\\nVersion: 1.2\\n')
    wheel.writestr(info + '/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + '/entry_points.txt', '[console_scripts]\\ntiny-page = tiny_page:main\\n')
    wheel.writestr(info + '/RECORD', '')
`

/** A wheel in a folder for pip's --find-links. The minor version of the Python that is here; null without one. */
export function tinyWheel (folder: string): number | null {
  try {
    execFileSync('python3', ['-c', WRITER, folder, PROGRAM], { stdio: 'ignore' })
    return Number(execFileSync('python3', ['-c', 'import sys, venv, ensurepip; print(sys.version_info[1])'], { cwd: join(folder) }).toString())
  } catch {
    return null
  }
}
