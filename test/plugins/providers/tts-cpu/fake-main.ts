/** Kokoro-FastAPI as its image runs it, for tests in containers: uvicorn's command line, the fake's answers. */
import { createFakeEngine } from '../../../../kernel/testing/fake-engine.js'
import { kokoro } from './fake-kokoro.js'

const values = new Map<string, string>()
const argv = process.argv.slice(2)
const [run, program, app] = argv.splice(0, 3)
if (run !== '-m' || program !== 'uvicorn' || app !== 'api.src.main:app') fail(`it is not started as its image starts it: ${process.argv.slice(2).join(' ')}`)
for (let i = 0; i < argv.length; i += 2) {
  const flag = argv[i]!
  if (!['--host', '--port', '--workers'].includes(flag)) fail(`Error: No such option: ${flag}`)
  values.set(flag, argv[i + 1] ?? '')
}

const engine = await createFakeEngine(Number(values.get('--port') ?? 8000), values.get('--host') ?? '127.0.0.1')
engine.answer(kokoro)
process.on('SIGTERM', () => process.exit(0))

function fail (why: string): never {
  process.stderr.write(`${why}\n`)
  process.exit(2)
}
