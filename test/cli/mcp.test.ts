import { readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'smol-toml'
import { mcpClients } from '../../cli/commands/mcp/mcp-clients.js'
import api from '../../plugins/api/mcp/index.js'
import { hosted, oddServer, record } from '../plugins/services/tool-servers/hosted.js'
import { run, type Finished } from './support.js'

t.test('tool servers at the prompt, through a real gateway', async t => {
  const notes = {
    name: 'io.github.acme/notes', description: 'Notes of a team',
    packages: [{ registryType: 'npm', identifier: '@acme/notes', version: '1.0.0', transport: { type: 'stdio' } }]
  }
  const current = { 'io.modelcontextprotocol.registry/official': { status: 'active', isLatest: true } }
  let answer: object | null = { servers: [{ server: notes, _meta: current }] }
  const registry = createServer((_request, response) => {
    response.writeHead(answer === null ? 503 : 200).end(JSON.stringify(answer))
  })
  await new Promise<void>(resolve => registry.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => {
    registry.closeAllConnections()
    registry.close(resolve)
  }))
  const pluginConfig = { 'tool-servers': { registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}/` } }
  const gateway = await hosted(t, { off: record([], 'enabled = false\n') }, { plugins: [api], pluginConfig })
  const svc = (...args: string[]): Promise<Finished> => run(['mcp', ...args, '--url', gateway.baseUrl])
  t.match((await svc('list')).stdout, /^ID +STATE +TOOLS +PROVIDER +BUNDLED +NAME\noff +disabled +\? +user +no +off\n$/)
  const installed = await svc('install', 'npm:@acme/none@1', '--no-start', '--env', 'A=b=c', '--secret', 'KEY=ACME_KEY')
  t.match(installed, { code: 0, stdout: 'Tool server none is installed.\n' }, installed.stderr)
  t.match(gateway.desk.get('none').server, { spec: 'npm:@acme/none@1', env: { A: 'b=c' }, secrets: { KEY: 'ACME_KEY' } })
  t.match(await svc('install', 'npm:@acme/none@1'), { code: 1, stderr: /already installed/ })
  t.match(await svc('install', 'gopher:x'), { code: 1, stderr: /is not npm:/ })
  t.match(await svc('install', 'npm:x', '--env', 'A'), { code: 2, stderr: /--env takes name=value/ })
  await gateway.gateway.kernel().config.change(draft => draft.toolServers.create('odd', { command: 'node', args: [oddServer], name: 'Odd' }))
  t.match(await svc('restart', 'odd'), { code: 0, stdout: 'Tool server odd is running, with 13 tools.\n' })
  t.match((await svc('status', 'odd')).stdout, /state +running\n[^]*tools +13\n[^]*\nTOOL +APPROVAL +DESCRIPTION\n[^]*\necho +- +Says it again\n/)
  const { stdout: shown } = await svc('status', 'odd')
  t.same(shown.split('\n').filter(line => line.length > 80), [], 'it fits a terminal')
  t.equal((JSON.parse((await svc('status', 'odd', '--json')).stdout) as { server: { id: string } }).server.id, 'odd')
  t.match(await svc('install', 'uvx:none', '--id', 'none', '--direct'), { code: 2, stderr: /--direct takes the address of a server/ })
  t.match(await svc('install', 'http://127.0.0.1:9/mcp', '--direct'), { code: 2, stderr: /--direct needs --id/ })
  t.match(await svc('install', 'http://127.0.0.1:9/mcp?a=b&c'), { code: 1, stderr: /not on the public internet[^]*svc mcp install 'http:\/\/127\.0\.0\.1:9\/mcp\?a=b&c' --direct --id <id>/ })
  const nobody = await svc('install', 'http://127.0.0.1:9/mcp', '--direct', '--id', 'nobody')
  t.match(nobody, { code: 1, stdout: 'Tool server nobody is installed.\n', stderr: /it is not running: [^]*`svc mcp logs nobody` shows[^]*`svc mcp uninstall nobody` removes it/ })
  t.match(gateway.desk.get('nobody').server, { url: 'http://127.0.0.1:9/mcp', transport: 'streamable-http' })
  t.match((await svc('logs', 'odd')).stdout, /Z state +starting\n[^]*Z state +ready, 13 tools/)
  t.match(await svc('status', 'nothing'), { code: 1, stderr: /no such tool server: 'nothing'; see `svc mcp list`/ })
  t.match((await svc('catalog', 'list', 'filesystem')).stdout, /npm:@modelcontextprotocol\/server-filesystem/)
  t.match(await svc('catalog', 'list', 'acme'), { code: 0, stdout: 'No tool servers found. `svc mcp catalog refresh` loads more from the registry.\n' })
  t.match(await svc('catalog', 'refresh'), { code: 0, stdout: 'The registry has 1 tool server that can be installed here.\n' })
  t.match((await svc('catalog', 'list', 'acme')).stdout, /^npm:@acme\/notes@1\.0\.0 .* Notes of a team$/m)
  answer = null
  t.match(await svc('catalog', 'refresh'), { code: 1, stderr: /HTTP 503; the previous entries stay/ })
  t.match(await svc('uninstall', 'odd', '--force'), { code: 0, stdout: 'Tool server odd is uninstalled.\n' })
  t.notOk(gateway.desk.list().some(({ server }) => server.id === 'odd'))

  await t.test('connect prints or writes what each client needs, and leaves the rest of its file as it is', async t => {
    const home = t.testdir()
    const connect = (client: string, ...args: string[]): Promise<Finished> =>
      run(['mcp', 'connect', client, '--server', 'off', '--url', gateway.baseUrl, ...args], { env: { HOME: home } })
    const url = `${gateway.baseUrl}/mcp/off`
    for (const client of mcpClients) {
      const printed = await connect(client)
      t.match(printed, { code: 0, stdout: new RegExp(url) }, `${client}: ${printed.stderr}`)
      const { file, content } = JSON.parse((await connect(client, '--json')).stdout) as { file: string, content: string }
      t.ok(file.startsWith(home), client)
      const written = await connect(client, '--write')
      t.match(written, { code: 0, stdout: `${file} is written.\n` }, `${client}: ${written.stderr}`)
      t.ok((await readFile(file, 'utf8')).endsWith(content), client)
      t.match((await connect(client, '--write')).stdout, 'already has it', client)
      t.match(printed.stdout, `\`svc mcp connect ${client} --server off --write\` writes it to the file`, 'what it tells to run writes the same')
    }
    const json = join(home, 'own.json')
    await writeFile(json, '{\n    "theme": "dark",\n    "mcpServers": { "mine": { "url": "http://x" } }\n}\n', { mode: 0o640 })
    t.equal((await connect('cursor', '--write', '--file', json)).code, 0)
    t.match(JSON.parse(await readFile(json, 'utf8')), { theme: 'dark', mcpServers: { mine: { url: 'http://x' }, svc: { url, headers: { 'X-svc-Agent': 'cursor' } } } })
    t.equal((await stat(json)).mode & 0o777, 0o640)
    t.match(await readFile(`${json}.svc-backup`, 'utf8'), /"theme": "dark",\n {4}"mcpServers": \{ "mine"/)

    const toml = join(home, 'own.toml')
    await writeFile(toml, '# mine\nmodel = "x"\n\n[mcp_servers.svc]\nurl = "http://old"\n\n[other]\na = 1\n')
    t.equal((await connect('codex', '--write', '--file', toml)).code, 0)
    t.match(await readFile(toml, 'utf8'), /^# mine\nmodel = "x"\n/)
    t.match(parse(await readFile(toml, 'utf8')), { mcp_servers: { svc: { url } }, other: { a: 1 } })

    const yaml = join(home, 'own.yaml')
    await writeFile(yaml, 'model:\n  default: x # mine\n')
    t.equal((await connect('hermes', '--write', '--file', yaml)).code, 0)
    t.equal(await readFile(yaml, 'utf8'), `model:\n  default: x # mine\nmcp_servers:\n  svc:\n    url: ${url}\n    headers:\n      X-svc-Agent: hermes\n`)

    const commented = join(home, 'commented.json')
    for (const [file, text] of [[commented, '{ // mine\n  "mcp": {} }'], [yaml, 'mcp_servers: {}\n']] as const) {
      await writeFile(file, text)
      const refused = await connect(file === yaml ? 'hermes' : 'opencode', '--write', '--file', file)
      t.match(refused, { code: 1, stderr: /was not changed[^]*Add this by hand/ })
      t.equal(await readFile(file, 'utf8'), text)
    }
    t.match(await connect('notepad'), { code: 2 })
    t.match(await run(['mcp', 'connect', 'cursor', '--server', 'nothing', '--url', gateway.baseUrl]), { code: 1, stderr: /no such tool server/ })
  })
})
