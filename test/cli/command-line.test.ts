import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Command } from 'commander'
import t from 'tap'
import { Cli } from '../../cli/cli.js'
import { exitCodes } from '../../cli/failure.js'
import { createProgram } from '../../cli/program.js'
import { shellWords } from '../../kernel/contract/text/shell-words.js'
import { shippedProgram } from '../program.js'
import { documents, root, sources } from '../repository.js'
import { bin, FakeProcess, run } from './support.js'

const nobody = ['--url', 'http://127.0.0.1:9']

interface Found {
  readonly path: string
  readonly command: Command
}

/** Every command that a help text shows; those with commands of their own come before them. */
function commandTree (program: Command, path: readonly string[] = []): readonly Found[] {
  const below = program.createHelp().visibleCommands(program).filter(command => command.name() !== 'help')
  return [
    { path: path.join(' '), command: program },
    ...below.flatMap(command => commandTree(command, [...path, command.name()]))
  ]
}

const newProgram = (): Promise<Command> => createProgram(new Cli(new FakeProcess(), () => 'svc'))
const tree = commandTree(await newProgram())
const leaves = tree.filter(({ command }) => command.commands.length === 0)

t.test('every command has a help text that is not too wide', async t => {
  t.ok(leaves.length > 40, `${leaves.length} commands`)
  for (const { path, command } of tree) {
    const { code, stdout, stderr } = await run([...path.split(' ').filter(word => word !== ''), '--help'])
    t.equal(code, 0, path)
    t.match(stdout, `Usage: svc${path === '' ? '' : ` ${path}`}`)
    if (command.commands.length === 0) t.match(stdout, /\nExamples?:\n {2}\$ /, `${path} has an example`)
    t.equal(stderr, '')
    t.strictSame(stdout.split('\n').filter(line => line.length > (line.startsWith('  $ ') ? 100 : 80)), [], `${path} is not too wide`)
    t.not(command.description(), '', `${path} says what it does`)
  }
})

t.test('the list of commands, which loads none of them, says what each says of itself', async t => {
  const program = await newProgram()
  const list = await createProgram(new Cli(new FakeProcess(), () => 'svc'), [])
  t.equal(list.helpInformation(), program.helpInformation())
  t.ok(list.commands.every(command => command.commands.length === 0), 'none is loaded')
  t.match(await run(['slto']), { code: 2, stderr: /Did you mean slot\?/ }, 'a slip is still understood')
})

t.test('every example is a command line that makes sense', async t => {
  for (const { path } of leaves) {
    const { stdout } = await run([...path.split(' '), '--help'])
    const examples = stdout.slice(stdout.lastIndexOf('\nExample')).matchAll(/^ {2}\$ (.*)$/gm)
    for (const [, line] of examples) {
      const typed = /(?:^|[ (])svc (.*?)(?: (?:\||>>?|<) .*|\)'.*)?$/.exec(line!)?.[1]
      if (typed === undefined) {
        t.fail(`${path}: ${line} does not call svc`)
        continue
      }
      const program = await newProgram()
      const called: string[] = []
      for (const found of commandTree(program)) {
        if (found.command.commands.length === 0) found.command.action(() => { called.push(found.path) })
      }
      await program.parseAsync(['node', 'svc', ...shellWords(typed)])
      t.strictSame(called, [path], line!)
    }
  }
})

t.test('every command that a message or a README names exists, with its options', t => {
  const named = [...sources('cli', 'kernel', 'plugins'), ...documents()].flatMap(({ path, text }) =>
    [...text.matchAll(/`svc ([a-z][^`\\\n]*)/g)].map(([, words]) => ({ file: path, words: words!.replaceAll(/\$\{[^}]*\}/g, 'x') })))
    // a text in a text
    .filter(({ words }) => !words.includes('${'))
  t.ok(named.length > 100, `${named.length} are named`)
  const program = tree[0]!.command
  const unknown = named.flatMap(({ file, words }) => {
    let command = program
    const missing: string[] = []
    for (const word of words.split(/[\s,/()]+/)) {
      const below = command.commands.find(each => each.name() === word || each.aliases().includes(word))
      const option = /^--?[a-z][\w-]*/.exec(word)?.[0]
      if (below !== undefined) command = below
      else if (option !== undefined) {
        const options = [...command.options, ...program.options]
        if (option !== '--help' && !options.some(({ long, short }) => option === long || option === short)) missing.push(option)
      } else if (command === program) missing.push(word)
    }
    return missing.map(word => `${file}: svc ${words}: no ${word}`)
  })
  t.strictSame(unknown, [])
  t.end()
})

t.test('README.md names every command, and no other', t => {
  const text = readFileSync(join(root, 'cli/README.md'), 'utf8')
  const cells = [...text.matchAll(/^\| (`svc [^|]*?) \|/gm)].map(([, cell]) => cell!)
  const named = cells.flatMap(cell => {
    let group = ''
    return [...cell.matchAll(/`([^`]+)`/g)].map(([, words]) => {
      const plain = words!.replace(/\s*[<[].*/, '')
      if (!plain.startsWith('svc ')) return `${group}${plain}`
      const path = plain.slice('svc '.length)
      group = path.includes(' ') ? `${path.split(' ').slice(0, -1).join(' ')} ` : ''
      // `svc doctor`, `toolbox-pull`: what follows a command with commands of its own may be one of them
      if (group === '' && tree.some(other => other.path.startsWith(`${path} `))) group = `${path} `
      return path
    })
  })
  for (const { path } of leaves) t.ok(named.some(name => name === path || name.startsWith(`${path} `)), `README.md has svc ${path}`)
  for (const name of named) t.ok(tree.some(({ path }) => name === path || (path !== '' && name.startsWith(`${path} `))), `svc ${name} exists`)
  t.end()
})

t.test('README.md names the options of tool servers, approvals and logs, and no others', t => {
  const text = readFileSync(join(root, 'cli/README.md'), 'utf8')
  for (const [row, group] of [['svc mcp list', 'mcp '], ['svc mcp connect', 'mcp connect'], ['svc agent approvals list', 'agent approvals '], ['svc service list', 'service logs']] as const) {
    const line = text.split('\n').find(each => each.startsWith(`| \`${row}`))!
    const commands = leaves.filter(({ path }) => path.startsWith(group) && (group === 'mcp connect' || !/catalog|connect/.test(path)))
    const options = commands.flatMap(({ command }) => command.options)
    const named = [...line.matchAll(/(?<=[` ])--?[a-z][\w-]*/g)].map(([option]) => option)
    for (const option of options) {
      if (option.long !== '--json') t.ok(named.some(name => name === option.long || name === option.short), `${row}: ${option.flags}`)
    }
    for (const name of named) t.ok(options.some(({ long, short }) => name === long || name === short), `${row}: ${name} exists`)
  }
  t.end()
})

t.test('a script can have what is listed, shown or checked as JSON', t => {
  const wanted = /(^|[ ])(list|show|status|ps|validate|scan|doctor|toolbox-pull|perms)$/
  for (const { path, command } of tree) {
    if (!wanted.test(path)) continue
    t.ok(command.options.some(({ long }) => long === '--json'), `svc ${path} --json`)
  }
  t.end()
})

t.test('README.md has the exit codes', t => {
  const text = readFileSync(join(root, 'cli/README.md'), 'utf8')
  for (const code of Object.values(exitCodes)) t.match(text, new RegExp(`^\\| ${code} \\|`, 'm'))
  t.end()
})

/**
 * What the command line promises: by command the options that it takes; `!` marks those that it cannot do without. More of
 * them may be there.
 */
const promised: Readonly<Record<string, readonly string[]>> = {
  'status': [],
  'probe': [],
  'setup': ['--auto', '--storage-dir', '--no-pull', '--no-extensions'],
  'serve': ['--host', '--port', '--reload', '--home', '--demo', '--log-level'],
  'update': ['--check', '--rollback', '--channel', '--target'],
  'uninstall': ['--purge', '--clean-slate', '--keep-data', '-f, --force', '--dev'],
  'slot list': ['--json'],
  'slot status': ['--json'],
  'slot show': ['--json'],
  'slot load': ['-m, --model'],
  'slot unload': [],
  'slot restart': [],
  'slot swap': ['-m, --model!', '--no-persist'],
  'slot create': ['-t, --type', '--provider', '--hardware', '-m, --model', '-p, --port', '--ctx-size'],
  'slot edit': ['--model', '--port', '--ctx-size', '--provider', '--hardware'],
  'slot delete': ['-f, --force'],
  'slot logs': ['-f, --follow', '-n, --lines'],
  'model list': ['--json'],
  'model show': ['--json'],
  'model pull': [],
  'model register': ['-p, --path!', '--name', '--license'],
  'model rm': ['-f, --force'],
  'model assign': ['-s, --slot!'],
  'registry import': ['-f, --force', '--dest'],
  'memory graph status': ['--json'],
  'memory graph enable': ['--slot', '--json'],
  'memory graph disable': ['--json'],
  'memory migrate': ['--dry-run', '--legacy-dir', '--json'],
  'config show': [],
  'config edit': [],
  'config migrate': [],
  'config validate': [],
  'config reload': [],
  'config hardware': [],
  'doctor': ['--plain', '--ports'],
  'doctor toolbox-pull': ['--json', '--manifest'],
  'doctor perms': ['--fix'],
  'capabilities migrate': ['--dry-run'],
  'agent list': ['--json'],
  'agent install': ['--switch', '--form', '--dry-run', '--offline', '--skip-phase', '--json'],
  'agent uninstall': ['--keep-memory', '--json'],
  'agent peers': ['--json'],
  'agent status': ['--json'],
  'agent log': ['--phase', '--json'],
  'agent upgrade': ['--to', '--json'],
  'agent reprovision': ['--phase', '--repair', '--json'],
  'agent bootstrap': ['--dry-run', '--offline', '--skip-phase', '--json'],
  'agent run': [],
  'agent connect': ['--write', '--json'],
  'agent approvals list': [],
  'agent approvals approve': [],
  'agent approvals deny': [],
  'agent personas list': [],
  'agent personas show': [],
  'agent personas activate': ['--reload-url'],
  'board list': ['--board', '--all', '--json'],
  'board add': ['--board', '--body', '--to', '--assignee', '--priority', '--after', '--json'],
  'board move': ['--board', '--assignee', '--reason', '--summary', '--json'],
  'board show': ['--board', '--json'],
  'board watch': ['--board', '--since', '--json'],
  'service list': ['--json'],
  'service start': [],
  'service stop': [],
  'service restart': [],
  'service enable': [],
  'service disable': [],
  'service logs': ['-f, --follow', '-n, --lines'],
  'service install': [],
  'mcp list': [],
  'mcp status': [],
  'mcp install': [],
  'mcp uninstall': [],
  'mcp restart': [],
  'mcp catalog list': [],
  'mcp catalog refresh': [],
  'migrate model-layout': ['--apply', '-f, --force', '--registry', '--mount-root', '--canonical-root'],
  'chat': ['-s, --slot', '-m, --model', '--system', '--max-tokens', '--temperature', '--json', '--no-stream']
}

/** Whether a test has the words of a command, maybe with a function for the group that it is about. */
function runs (text: string, words: readonly string[]): boolean {
  const typed = (some: readonly string[]): string => `'${some.join('\', \'')}'`
  if (text.includes(words.join(' ')) || text.includes(typed(words))) return true
  return words.slice(1).some((_, i) =>
    text.includes(`${typed(words.slice(0, i + 1))}, ...`) && text.includes(`(${typed(words.slice(i + 1))}`))
}

/** Whether a test types an option, as a word of its own or within a line. */
function gives (text: string, flag: string): boolean {
  return new RegExp(`[ '\`]${flag}(?=['\` =])`).test(text)
}

t.test('every command and option that is promised exists, and a test runs each of them', async t => {
  const tests = sources('test').filter(({ path }) => !path.endsWith('/command-line.test.ts')).map(({ text }) => text)
  for (const [path, options] of Object.entries(promised)) {
    const found = tree.find(other => other.path === path)
    t.ok(found, `svc ${path}`)
    const running = tests.filter(text => runs(text, path.split(' ')))
    for (const given of options) {
      const flags = given.replace('!', '').split(', ')
      const option = found?.command.options.find(({ long, short }) => flags.every(flag => flag === long || flag === short))
      t.equal(option?.mandatory, given.endsWith('!'), `svc ${path} ${given}`)
      t.ok(running.some(text => flags.some(flag => gives(text, flag))), `a test runs svc ${path} ${given}`)
    }
    t.ok(running.length > 0, `a test runs svc ${path}`)
  }
  const create = tree.find(({ path }) => path === 'slot create')!.command
  const choices = (flag: string): readonly string[] | undefined => create.options.find(({ long }) => long === flag)?.argChoices
  t.strictSame(choices('--type'), ['llm', 'embedding', 'reranking', 'transcription', 'tts', 'image'])
  for (const hardware of ['vulkan', 'rocm', 'cpu']) t.ok(choices('--hardware')?.includes(hardware), hardware)
  t.notOk(create.options.some(({ long }) => long === '--profile'), 'a new slot takes the profile of its model or device')
  t.strictSame(tree.find(({ path }) => path === 'update')!.command.options.find(({ long }) => long === '--channel')?.argChoices, ['stable', 'nightly'])
})

t.test('help for a command that does not exist names it, as the command itself would, and not the whole help', async t => {
  for (const [line, asked] of [['slto', 'help slto'], ['frobnicate', 'help frobnicate'], ['slot lst', 'help slot lst'], ['slot lst', 'slot help lst']] as const) {
    const called = await run(line.split(' '))
    t.match(called, { code: 2, stdout: /^$/, stderr: /^Error: unknown command / })
    t.strictSame(await run(asked.split(' ')), called, asked)
  }
  for (const words of [['slot'], ['slot', 'list'], ['model', 'list'], ['agent', 'approvals', 'deny']]) {
    const shown = await run([...words, '--help'])
    t.match(shown, { code: 0, stdout: `Usage: svc ${words.join(' ')} ` })
    t.strictSame(await run(['help', ...words]), shown, words.join(' '))
  }
  t.match(await run(['help']), { code: 0, stdout: /^Usage: svc / })
  t.match(await run(['--url', 'http://127.0.0.1:9', 'help', 'slot', 'list']), { code: 0, stdout: 'Usage: svc slot list' })
})

t.test('usage errors exit 2 and say what is wrong', async t => {
  const cases: ReadonlyArray<readonly [string, RegExp]> = [
    ['', /Usage: svc/],
    ['slot', /Usage: svc slot/],
    ['frobnicate', /unknown command 'frobnicate'/],
    ['slot lst', /Did you mean list/],
    ['slot list --nope', /unknown option '--nope'/],
    ['slot show', /missing required argument 'name'/],
    ['slot create Coder -m x', /must be lowercase letters/],
    ['slot create coder -m x --type chat', /Allowed choices are llm, embedding/],
    ['slot create coder -m x --hardware gpu', /Allowed choices are vulkan, rocm, cuda, cpu/],
    ['slot create coder -m x --provider imagegen', /--type image/],
    ['slot create coder -m x --provider tts-gpu', /Allowed choices are llm-server, npu-rt, stt-engine, tts-cpu/],
    ['slot create coder -m x --ctx-size 64', /must be at least 128/],
    ['slot create coder -m x --ctx-size many', /must be a number/],
    ['slot create coder -m x --ctx-size 4096.5', /must be a whole number/],
    ['slot create coder -m x --port 9000', /must be at most 8200/],
    ['slot edit agent', /no changes were given/],
    ['slot edit agent --enable --disable', /cannot be used with/],
    ['slot edit agent --env 1A=x', /KEY=VALUE/],
    ['slot swap agent', /required option/],
    ['model register x', /required option '-p, --path/],
    ['model assign x', /required option '-s, --slot/],
    ['model pull x --capability fly', /Allowed choices are chat/],
    ['registry import /nowhere/x.tar', /does not exist/],
    ['slot logs agent -n 0', /must be at least 1/],
    ['serve --port 65536', /from 0 to 65535/],
    ['serve --log-level loud', /Allowed choices are debug/],
    ['plugin add git+https://example.org/x.git', /neither a folder, a tarball/],
    ['plugin remove ./x', /is not the name of a package/],
    ['status --url ftp://x', /is not a gateway address/]
  ]
  for (const [line, expected] of cases) {
    const { code, stdout, stderr } = await run(line.split(' ').filter(word => word !== ''))
    t.equal(code, 2, line)
    t.match(stderr, expected, line)
    t.equal(stdout, '', `${line} says nothing on standard output`)
  }
  const empty = await run(['chat', '  ', ...nobody])
  t.equal(empty.code, 2)
  t.match(empty.stderr, /prompt is empty/)
})

t.test('a gateway that is not there exits 1 with its address and what to do', async t => {
  for (const line of ['status', 'slot list', 'slot load agent', 'slot logs agent -f', 'chat hello', 'slot delete x -f']) {
    const { code, stdout, stderr } = await run([...line.split(' '), ...nobody])
    t.equal(code, 1, line)
    t.equal(stdout, '')
    t.equal(stderr, 'Error: no gateway answers at http://127.0.0.1:9\n' +
    'Start one with `svc serve`, or name another address with --url or SVC_API_URL.\n')
  }
})

t.test('the real program: version, environment, and a reader that leaves early', async t => {
  const exec = promisify(execFile)
  const svc = (args: readonly string[], env = {}) => exec(process.execPath, [bin, ...args], { env: { ...process.env, ...env } })
  for (const flag of ['--version', '-V']) t.match((await svc([flag])).stdout, /^svc \d+\.\d+\.\d+\n$/)
  const failed = await svc(['status'], { SVC_API_URL: 'localhost:9' }).catch((error: unknown) => error as { code: number, stderr: string })
  t.match(failed, { code: 1, stderr: /no gateway answers at http:\/\/localhost:9\s/ }, 'a scheme may be left out')
  const piped = await exec('sh', ['-c', `"${process.execPath}" "${bin}" slot --help 2>&1 | head -1; echo ok`])
  t.match(piped.stdout, /Usage: svc slot.*\nok/)
})

t.test('output that cannot be written is said on standard error, and the command fails', { skip: !existsSync('/dev/full') }, async t => {
  const exec = promisify(execFile)
  for (const program of [bin, shippedProgram()]) {
    for (const line of ['--version', '--help', 'slot --help', 'completion bash']) {
      const ended = await exec('sh', ['-c', `"${process.execPath}" "${program}" ${line} >/dev/full`]).catch((error: unknown) => error)
      t.match(ended, { code: 1, stderr: /^Error: standard output could not be written: ENOSPC[^\n]*\n$/ }, `${line} of ${program}`)
    }
  }
})
