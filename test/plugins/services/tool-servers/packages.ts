import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { oddServer } from './hosted.js'

const exec = promisify(execFile)

/** A registry with the odd server as `@acme/odd` 1.2.0. Resolves with what makes npm use it and nothing else. */
export async function npmRegistry (t: Test): Promise<Record<string, string>> {
  const folder = t.testdir()
  await mkdir(join(folder, 'package'))
  await writeFile(join(folder, 'package/server.js'), `#!/usr/bin/env node\n${await readFile(oddServer, 'utf8')}`)
  const about = { name: '@acme/odd', version: '1.2.0', type: 'module', bin: { odd: 'server.js' } }
  await writeFile(join(folder, 'package/package.json'), JSON.stringify(about))
  await exec('tar', ['-czf', 'odd.tgz', 'package'], { cwd: folder })
  const tarball = await readFile(join(folder, 'odd.tgz'))
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
  const registry = createServer((request, response) => {
    if (request.url === '/odd.tgz') return response.end(tarball)
    if (decodeURIComponent(request.url!) !== '/@acme/odd') return response.writeHead(404).end('{}')
    const dist = { tarball: `${origin}/odd.tgz`, integrity }
    response.writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ 'name': about.name, 'dist-tags': { latest: '1.2.0' }, 'versions': { '1.2.0': { ...about, dist } } }))
  })
  await new Promise<void>(resolve => registry.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => {
    registry.closeAllConnections()
    registry.close(resolve)
  }))
  const origin = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`
  return { npm_config_registry: origin, npm_config_cache: join(folder, 'cache'), npm_config_userconfig: '/dev/null' }
}

const SERVER = `
import json, sys
def say(**message): print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
def main():
    for line in sys.stdin:
        asked = json.loads(line)
        method, id = asked.get('method'), asked.get('id')
        if method == 'initialize': say(id=id, result={'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'snake', 'version': '2.0'}})
        elif method == 'tools/list': say(id=id, result={'tools': [{'name': 'where', 'description': 'Where', 'inputSchema': {'type': 'object', 'properties': {}}}]})
        elif method == 'tools/call': say(id=id, result={'content': [{'type': 'text', 'text': ' '.join(sys.argv[1:])}]})
        elif id is not None: say(id=id, error={'code': -32601, 'message': 'no such method'})
`
const WHEEL = `
import sys, zipfile
folder, program = sys.argv[1:]
info = 'acme_snake-2.0.dist-info'
with zipfile.ZipFile(folder + '/acme_snake-2.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('acme_snake.py', program)
    wheel.writestr(info + '/METADATA', 'Metadata-Version: 2.1\\nName: acme-snake\\nVersion: 2.0\\n')
    wheel.writestr(info + '/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + '/entry_points.txt', '[console_scripts]\\nacme-snake = acme_snake:main\\n')
    wheel.writestr(info + '/RECORD', '')
`

/** A folder with a server as `acme-snake` 2.0: what makes uv use it and nothing else. Null where there is no uvx or no Python. */
export async function wheelFolder (t: Test): Promise<Record<string, string> | null> {
  const folder = t.testdir()
  try {
    await exec('uvx', ['--version'])
    await exec('python3', ['-c', WHEEL, folder, SERVER])
  } catch {
    return null
  }
  return { UV_FIND_LINKS: folder, UV_OFFLINE: '1', UV_CACHE_DIR: join(folder, 'cache'), UV_PYTHON_DOWNLOADS: 'never' }
}
