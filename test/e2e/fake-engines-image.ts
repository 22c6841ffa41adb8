import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { packageRoot } from '../../kernel/config/package-root.js'
import type { TestEngine } from '../kernel/runtime/engines.js'

const run = promisify(execFile)
const dist = fileURLToPath(new URL('../../', import.meta.url))
const PROVIDERS = 'test/plugins/providers'

/** Both images start their engine as `python something`. */
const python = `#!/bin/sh
case "$1" in
  main.py) shift; mkdir -p custom_nodes; exec nodejs /opt/fakes/${PROVIDERS}/imagegen/fake/main.js --base-directory "$PWD" "$@" ;;
  *) exec nodejs /opt/fakes/${PROVIDERS}/tts-cpu/fake-main.js "$@" ;;
esac
`

/** Makes an image that is ComfyUI and Kokoro to whoever starts it: the fakes of the other tests. Removed after the test. */
export async function fakeEnginesImage (t: Test, { host, nodeImage }: TestEngine): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-fakes-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const put = (path: string, from: string): Promise<void> => cp(from, join(folder, 'fakes', path), { recursive: true })
  for (const path of [`${PROVIDERS}/imagegen/fake`, `${PROVIDERS}/audio`, `${PROVIDERS}/tts-cpu`, 'kernel/testing/fake-engine.js']) {
    await put(path, join(dist, path))
  }
  await put('node_modules/ws', join(packageRoot, 'node_modules/ws'))
  const files = { 'fakes/package.json': '{"type":"module"}', 'python': python, 'Dockerfile': `FROM ${nodeImage}\nCOPY fakes /opt/fakes\nCOPY python /usr/local/bin/python\n` }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content, { mode: 0o755 })
  }
  const tag = `localhost/svc-test-fakes:${process.pid}`
  const env = { ...process.env, DOCKER_HOST: host, DOCKER_BUILDKIT: '0' }
  await run('docker', ['build', '--quiet', '--tag', tag, folder], { env })
  t.teardown(() => run('docker', ['image', 'rm', '--force', tag], { env }))
  return tag
}
