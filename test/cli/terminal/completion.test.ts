import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { fakeApi, bin, run, slotRecord, type Answer } from '../support.js'

const has = (shell: string): boolean => {
  try {
    execFileSync(shell, ['-c', 'true'])
    return true
  } catch {
    return false
  }
}
const skip = (shell: string): { skip: string | false } => ({ skip: has(shell) ? false : `${shell} is not installed` })

const answers: Readonly<Record<string, Answer>> = {
  'GET /api/slots': [slotRecord('agent'), slotRecord('embed'), slotRecord('cloud', { kind: 'remote' }), slotRecord('$(touch owned)')],
  'GET /api/models': { models: [{ id: 'qwen3-4b' }, { id: 'org/model:Q4_K_M' }, { id: 'org/model:Q8_0' }, { id: '`touch owned`' }, { id: '-rf' }] },
  'GET /api/profiles': [{ name: 'rocm' }, { name: 'vulkan' }],
  'GET /api/requests': { requests: [{ id: 'req-1' }] }
}

interface Shell {
  /** Words that the shell offers for this line, the cursor at its end. */
  complete (line: string): Promise<readonly string[]>
}

/** A folder with `svc` on the PATH, and a script of its completion. */
async function home (
  t: Test, shell: string, api: string
): Promise<{ readonly folder: string, readonly env: Record<string, string> }> {
  const { stdout: script } = await run(['completion', shell])
  const folder = t.testdir({ 'bin': {}, 'models': { 'a b.gguf': '', 'c.gguf': '' }, 'svc.completion': script })
  writeFileSync(join(folder, 'bin/svc'), `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`, { mode: 0o755 })
  return { folder, env: { PATH: `${join(folder, 'bin')}:${process.env.PATH ?? ''}`, HOME: folder, SVC_API_URL: api, LANG: 'C.UTF-8' } }
}

const exec = promisify(execFile)

/** What readline does: it takes the line apart at blanks, colons and equals signs, and calls the function. */
async function bash (t: Test, api: string): Promise<Shell> {
  const { folder, env } = await home(t, 'bash', api)
  return {
    async complete (line) {
      const words = line.split(/\s+|(?<=[:=])|(?=[:=])/)
      const script = `set -u; source ./svc.completion; complete -p svc >/dev/null || exit 9
        COMP_LINE=$1; COMP_POINT=\${#1}; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svc
        ((\${#COMPREPLY[@]} == 0)) || printf '%s\\n' "\${COMPREPLY[@]}"`
      const { stdout } = await exec('bash', ['--norc', '-c', script, 'bash', line, ...words], { cwd: folder, env })
      return stdout.split('\n').filter(word => word !== '')
    }
  }
}

/** The functions of the completion system that only work inside of it are replaced by ones that print what they are given. */
async function zsh (t: Test, api: string): Promise<Shell> {
  const { folder, env } = await home(t, 'zsh', api)
  return {
    async complete (line) {
      const script = `compdef() { }; compset() { current=\${current#*=} }
        show() { local each; for each in "$@"; do [[ $each == $current* ]] && print -r -- "\${each%%:*}"; done }
        _describe() { [[ $1 == -o ]] && shift; show "\${(@P)2}" }
        _files() { local -a found=(*(N)); show $found }
        compadd() { local each; shift; for each in "$@"; do [[ $each == $current* ]] && print -r -- "$each"; done }
        source ./svc.completion; words=("$@"); CURRENT=$#; _svc; true`
      const { stdout } = await exec('zsh', ['-f', '-c', script, 'zsh', ...line.split(/\s+/)], { cwd: folder, env })
      return stdout.split('\n').filter(word => word !== '')
    }
  }
}

async function fish (t: Test, api: string): Promise<Shell> {
  const { folder, env } = await home(t, 'fish', api)
  mkdirSync(join(folder, '.config/fish'), { recursive: true })
  return {
    async complete (line) {
      const { stdout } = await exec('fish', ['--no-config', '-c', 'source ./svc.completion; complete -C $argv[1]', line], { cwd: folder, env })
      return stdout.split('\n').filter(word => word !== '').map(word => word.split('\t', 1)[0]!)
    }
  }
}

for (const [name, open] of Object.entries({ bash, zsh, fish })) {
  t.test(`${name} completes commands, options, choices and names`, skip(name), async t => {
    const api = await fakeApi(answers)
    t.teardown(() => api.close())
    const shell = await open(t, api.url)
    const offers = async (line: string, expected: readonly string[]): Promise<void> => {
      t.same([...await shell.complete(line)].sort(), [...expected].sort(), line)
    }
    await offers('svc sl', ['slot'])
    await offers('svc slot re', ['restart'])
    t.ok((await shell.complete('svc slot ')).includes('swap'), 'all commands of a group')
    await offers('svc slot create --h', ['--hardware', '--help'])
    await offers('svc slot create --hardware ', ['vulkan', 'rocm', 'cuda', 'cpu'])
    await offers('svc slot create x --hardware r', ['rocm'])
    await offers('svc completion ', ['bash', 'zsh', 'fish'])
    await offers('svc slot load ', ['agent', 'embed'])
    await offers('svc slot show --json em', ['embed'])
    await offers('svc slot load agent -m qw', ['qwen3-4b'])
    await offers('svc model show qw', ['qwen3-4b'])
    await offers('svc slot create co', [])
    await offers('svc slot edit agent --profile v', ['vulkan'])
    await offers('svc cancel r', ['req-1'])
    await offers('svc --url http://127.0.0.1:1 pl', ['plugin'])
    t.notOk((await shell.complete('svc ')).includes('completion-names'), 'what is hidden stays hidden')
    if (name === 'bash') {
      await offers('svc slot load agent -m org/model:Q', ['Q4_K_M', 'Q8_0'])
      await offers('svc slot create x --hardware=vu', ['vulkan'])
      await offers('svc registry import models/a', ['models/a b.gguf'])
      await offers('svc plugin list --home mo', ['models'])
    }
    if (name === 'fish') await offers('svc slot create x --hardware=vu', ['--hardware=vulkan'])
    if (name === 'zsh') await offers('svc slot create x --hardware=vu', ['vulkan'])
    await api.close()
    await offers('svc slot load ', [])
  })
}

t.test('names are quiet and plain, whatever the gateway says', async t => {
  const api = await fakeApi(answers)
  t.teardown(() => api.close())
  const names = (kind: string) => run(['completion-names', kind, '--url', api.url])
  t.match(await names('slot'), { code: 0, stdout: 'agent\nembed\n', stderr: /^$/ })
  t.match(await names('model'), { code: 0, stdout: 'qwen3-4b\norg/model:Q4_K_M\norg/model:Q8_0\n' }, 'nothing that a shell would run or take for an option')
  t.match(await names('upstream'), { code: 0, stdout: /^$/, stderr: /^$/ }, 'a refusal is no word')
  t.match(await run(['completion-names', 'slot', '--url', 'http://127.0.0.1:9']), { code: 0, stdout: /^$/, stderr: /^$/ })
  const silent = await fakeApi({ 'GET /api/slots': () => {} })
  t.teardown(() => silent.close())
  t.match(await run(['completion-names', 'slot', '--url', silent.url]), { code: 0, stdout: /^$/ }, 'one that does not answer is not waited for')
})

t.test('the scripts are of the shells that there are', async t => {
  t.match(await run(['completion', 'tcsh']), { code: 2, stderr: /Allowed choices are bash, zsh, fish/ })
})
