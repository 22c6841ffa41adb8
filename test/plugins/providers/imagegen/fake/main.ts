/** ComfyUI's `main.py` (0.3.64), for tests: the same command line, the same server. */
import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFakeComfy } from './server.js'

/** Flags of the real one that the tests and the seed profile use; whether they take a value. */
const flags: Readonly<Record<string, boolean>> = {
  '--listen': true, '--port': true, '--base-directory': true, '--output-directory': true, '--cpu': false, '--disable-mmap': false,
  '--bf16-vae': false, '--cache-none': false, '--lowvram': false, '--highvram': false, '--fp32-vae': false, '--use-pytorch-cross-attention': false
}

const values: Record<string, string> = {}
const argv = process.argv.slice(2)
for (let i = 0; i < argv.length; i++) {
  const flag = argv[i]!
  if (!Object.hasOwn(flags, flag)) {
    process.stderr.write(`main.py: error: unrecognized arguments: ${argv.slice(i).join(' ')}\n`)
    process.exit(2)
  }
  if (flags[flag] === true) values[flag] = argv[++i] ?? ''
}

const given = values['--base-directory']
const baseDirectory = given ?? join(tmpdir(), 'comfyui')
// an image has its own folders; in a base directory it looks for custom nodes first of all, and makes none
if (given === undefined) for (const name of ['models/checkpoints', 'custom_nodes']) mkdirSync(join(baseDirectory, name), { recursive: true })
const nodes = join(baseDirectory, 'custom_nodes')
if (!existsSync(nodes)) {
  process.stderr.write(`Traceback (most recent call last):\n  File "main.py", line 132, in <module>\n    execute_prestartup_script()\nFileNotFoundError: [Errno 2] No such file or directory: '${nodes}'\n`)
  process.exit(1)
}

const server = await startFakeComfy({
  host: values['--listen'] ?? '127.0.0.1',
  port: Number(values['--port'] ?? 8188),
  baseDirectory,
  argv: ['main.py', ...argv]
})
process.stdout.write(`Starting server\n\nTo see the GUI go to: http://${values['--listen'] ?? '127.0.0.1'}:${server.port}\n`)
process.on('SIGTERM', () => process.exit(0))
