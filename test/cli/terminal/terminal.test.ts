import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { bin } from '../support.js'

const SCRIPT = '/usr/bin/script'
const CURL = '/usr/bin/curl'
const COLUMNS = 80
const CONTROL = /\u001b\[[0-9;?]*[A-Za-z]/g

interface Terminal {
  /** Everything that was shown so far, as lines. */
  lines (): string[]
  /** Resolves when the text is shown, after what was waited for before. */
  shows (text: string): Promise<void>
  type (text: string): void
  readonly code: Promise<number>
}

/** The command line on a real pseudo-terminal of 80 columns, which `script` makes. */
function terminal (t: Test, home: string, ...args: readonly string[]): Terminal {
  const words = [process.execPath, bin, ...args].map(word => `'${word}'`).join(' ')
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SVC_|COLUMNS|DOCKER_)/.test(name)))
  const child = spawn(SCRIPT, ['-qefc', `stty cols ${COLUMNS} rows 40; exec ${words}`, '/dev/null'], {
    env: { ...clean, SVC_HOME: home, TERM: 'xterm' }, stdio: ['pipe', 'pipe', 'inherit']
  })
  let shown = ''
  let from = 0
  child.stdout.on('data', (chunk: Buffer) => { shown += chunk.toString('utf8').replace(CONTROL, '') })
  const closed = once(child, 'close')
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await closed
  })
  return {
    lines: () => shown.replaceAll('\r\n', '\n').split(/[\r\n]/),
    async shows (text) {
      while (!shown.includes(text, from)) {
        await Promise.race([once(child.stdout, 'data'), closed.then(() => { throw new Error(`it ended without '${text}': ${shown}`) })])
      }
      from = shown.indexOf(text, from) + text.length
    },
    type: text => { child.stdin.write(text) },
    code: closed.then(([code]) => Number(code))
  }
}

function homeOf (t: Test, files: object = {}): string {
  return t.testdir({ etc: { svc: { 'svc.toml': '[runtime]\ndriver = "process"\n', ...files } } })
}

t.test('no line of a start, of setup and of the reports is wider than a terminal of 80 columns', async t => {
  if (!existsSync(SCRIPT)) return t.comment('script (util-linux) is not here')
  const home = homeOf(t, { slots: { 'coder.toml': 'device = "cpu"\n[model]\ndefault = "a-model-that-is-nowhere-on-this-machine"\n' } })
  const fits = (t: Test, { lines }: Terminal): void => {
    // a path has no place to be folded at
    for (const line of lines().filter(text => !text.includes(home))) t.ok(line.length <= COLUMNS, `${line.length}: ${line}`)
  }
  const serve = terminal(t, home, 'serve', '--port', '0')
  await serve.shows(' is ready at ')
  await serve.shows('coder failed')
  const banner = serve.lines()
  t.match(banner.find(line => line.startsWith('engines ')), /engines +child processes, no container engine$/)
  t.match(banner.find(line => line.startsWith('chat ')), /svc chat --url http:\S+ --slot coder$/)
  if (existsSync(CURL)) {
    const [first, last] = [banner.findIndex(line => line.startsWith('curl ')), banner.findIndex(line => line.includes('"messages"'))]
    const pasted = await promisify(execFile)('sh', ['-c', banner.slice(first, last + 1).join('\n')])
    t.match(JSON.parse(pasted.stdout), { error: { code: 'model.not_found', message: /a-model-that-is-nowhere/ } }, 'what is copied from the screen runs')
  }
  for (const args of [['status'], ['doctor'], ['slot', 'list'], ['stack', 'list'], ['model', 'catalog'], ['capabilities', 'set', 'embed', '--model', 'nomic-embed-text-v1.5-q8_0'],
    ['slot', 'load', 'coder'], ['slot', 'create', 'x', '--hardware', 'cuda', '--model', '/nowhere.gguf']]) {
    const shown = terminal(t, home, ...args)
    await shown.code
    t.ok(shown.lines().length > 1, args.join(' '))
    fits(t, shown)
  }
  const setup = terminal(t, home, 'setup')
  await setup.shows('models be stored?')
  setup.type('\r')
  const [base] = /http:\/\/127[^\s/]*/.exec(serve.lines().join('\n')) ?? []
  // offered where it can be brought: with a Python or a container engine
  const { offers } = await (await fetch(`${base}/api/install/state`)).json() as { offers: ReadonlyArray<{ name: string, kind: string }> }
  for (const { name } of offers.filter(({ kind }) => kind === 'app')) {
    await setup.shows(`Set up ${name}`)
    setup.type('n\r')
  }
  await setup.shows('Which one?')
  setup.type('y\r')
  await setup.shows('is not one of these')
  setup.type('none\r')
  if (offers.some(({ kind }) => kind === 'agent')) {
    await setup.shows('Which one? [1]')
    setup.type('\r')
  }
  await setup.shows('Set this up?')
  setup.type('n\r')
  t.equal(await setup.code, 0)
  fits(t, setup)
  serve.type('\u0003')
  t.equal(await serve.code, 0)
  fits(t, serve)
  t.notMatch(serve.lines().join('\n'), 'slots/coder.toml', 'what the slot told itself is not told again as a problem of its file')
})
