import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { commandGroups } from '../../../cli/commands/index.js'
import { commandNames, ownCommand } from '../../../cli/own-command.js'
import { asWritten, cliWords } from '../../../cli/client/route-words.js'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

t.test('routes in messages become commands, and what has none stays', async t => {
  const cases: ReadonlyArray<readonly [message: string, told: string]> = [
    ['no such model: \'x\'; GET /api/models lists all models', 'no such model: \'x\'; `svc model list` lists all models'],
    ['pick a model of GET /api/models/catalogue', 'pick a model of `svc model catalog`'],
    ['use POST /api/slots/agent-2/unload', 'use `svc slot unload agent-2`'],
    ['fix it, or DELETE /api/slots/agent', 'fix it, or `svc slot delete agent`'],
    ['see GET /api/slots/agent/resolved', 'see GET /api/slots/agent/resolved'],
    ['name a repository with hf_repo and hf_filename', 'name a repository with --repo and --file'],
    [`GET /api/slots: plugin is failed: ${asWritten('GET /api/slots is mine')}; see GET /api/plugins`, '`svc slot list`: plugin is failed: GET /api/slots is mine; see `svc plugin list --all`'],
    ['unpin it with POST /api/comfyui/pin', 'unpin it with POST /api/comfyui/pin']
  ]
  for (const [message, told] of cases) t.equal(cliWords(message), told)
})

t.test('a command is spelled as this user calls it', async t => {
  t.strictSame(commandNames, commandGroups.map(({ usage }) => usage.split(' ')[0]), 'every command')
  const message = 'next start of svc; run `svc slot list`, `npx svc ps` or svc model pull x; /opt/svc serve stays, '
  t.equal(cliWords(message + 'GET /api/status', 'npx svc'),
    'next start of svc; run `npx svc slot list`, `npx svc ps` or npx svc model pull x; /opt/svc serve stays, `npx svc status`')
  t.equal(cliWords(asWritten('svc slot list'), 'npx svc'), 'svc slot list')

  const home = t.testdir({
    checkout: { dist: { 'svc.js': '' } },
    lib: { node_modules: { gateway: { 'svc.js': '' } } },
    project: { node_modules: { 'gateway': { 'svc.js': '' }, '.bin': { svc: t.fixture('symlink', '../gateway/svc.js') } } },
    bin: { svc: t.fixture('symlink', '../lib/node_modules/gateway/svc.js') },
    linked: { svc: t.fixture('symlink', '../checkout/dist/svc.js') }
  })
  const at = (path: string): string => join(home, path)
  const called = (script: string, program: string, env: Record<string, string> = {}): string =>
    ownCommand(at(script), env, at(program))
  const [checkout, global, local] = ['checkout/dist/svc.js', 'lib/node_modules/gateway/svc.js', 'project/node_modules/gateway/svc.js']
  t.equal(called('bin/svc', global), 'svc', 'by the name that npm put on PATH')
  t.equal(called(checkout, checkout), 'npx svc', 'npm start in a checkout')
  t.equal(called(checkout, checkout, { PATH: `/none:${at('bin')}` }), 'npx svc', 'another copy is on PATH')
  t.equal(called(checkout, checkout, { PATH: at('linked') }), 'svc', 'npm link')
  t.equal(called(global, global, { PATH: '/usr/bin' }), 'svc', 'a service whose PATH lacks it')
  t.equal(called(local, local, { PATH: at('project/node_modules/.bin') }), 'npx svc', 'npm run in a project that depends on it')
  t.equal(called('project/node_modules/.bin/svc', local), 'npx svc')
  t.equal(called(checkout, checkout, { PATH: at('linked'), npm_command: 'exec' }), 'npx svc', 'by npx')
})

/** Nothing in the command line does what these do. */
const withoutCommand = [
  /\/api\/comfyui\//, /(GET|POST) \/api\/mcp\//, /GET \/api\/tools\//, /PUT \/api\/secrets\//, /GET \/api\/chat-templates/, /GET \/api\/slots\/x is another route/,
  /GET \/api\/updates\/status\//, /GET \/api\/board\/boards/, /GET \/api\/agents\/x\/session\/handshake/
]

t.test('every route that a message of the gateway names has a command', async t => {
  const found: string[] = []
  for (const folder of ['kernel', 'plugins']) {
    for (const path of await readdir(join(root, folder), { recursive: true })) {
      if (!path.endsWith('.ts')) continue
      const text = await readFile(join(root, folder, path), 'utf8')
      for (const [message] of text.matchAll(/\w+Error\('[^']+',\s*[`'"][^\n]*\b(?:GET|POST|PUT|DELETE) \/api\/[^\n]*/g)) {
        const told = cliWords(message.replaceAll(/\$\{[\w.]+\}/g, 'x'))
        if (/\b(?:GET|POST|PUT|DELETE) \/api\//.test(told) && !withoutCommand.some(pattern => pattern.test(told))) found.push(`${path}: ${told}`)
      }
    }
  }
  t.same(found, [])
})
