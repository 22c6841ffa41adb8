#!/usr/bin/env node
// Takes llama-server's arguments and runs a gateway at the address that they name, with that llama-server as the engine
// of its slot `suite`.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { SUITE_GATEWAY, SUITE_ENGINE, SUITE_MODEL, SUITE_FOLDER, SUITE_WORK } = process.env
const rest = process.argv.slice(2)
const take = (flag, fallback) => {
  const at = rest.indexOf(flag)
  return at < 0 ? fallback : rest.splice(at, 2)[1]
}
const [host, port] = [take('--host', '127.0.0.1'), take('--port', '8080')]
const type = rest.includes('--reranking') ? 'reranking' : rest.includes('--embedding') ? 'embedding' : 'llm'

const home = mkdtempSync(join(SUITE_WORK, 'home-'))
const quoted = text => `'${text.replaceAll('\'', '\'\\\'\'')}'`
const put = (path, text) => {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), text)
}
// what the gateway would launch says on which port; all else is as the test wants it, also the environment, of which an
// engine gets little by itself
const passed = ['PATH', 'HOME', 'SVC_TEST_DOCKER_HOST', 'SUITE_MODEL', 'SUITE_FOLDER', 'SUITE_WORK', 'LLAMA_SERVER_DEBUG_FAKE_TIMING', 'AIP_MODE']
const environment = passed.filter(name => process.env[name] !== undefined).map(name => `export ${name}=${quoted(process.env[name])}`)
put('llama-server', `#!/usr/bin/env bash
${environment.join('\n')}
while [ $# -gt 0 ] && [ "$1" != --port ]; do shift; done
export AIP_HTTP_PORT="$2"
exec ${[SUITE_ENGINE, ...rest].map(quoted).join(' ')} --host 127.0.0.1 --port "$2"
`)
chmodSync(join(home, 'llama-server'), 0o755)
const sources = readdirSync(join(SUITE_FOLDER, 'unit')).map(file => readFileSync(join(SUITE_FOLDER, 'unit', file), 'utf8')).join('\n')
const names = new Set([...sources.matchAll(/model["']?\s*[:=]\s*["']([\w.:/-]+)["']/gi)].map(([, name]) => name))
for (const name of ['suite', 'model', 'none']) names.delete(name)
put('etc/svc/svc.toml', `[runtime]
driver = "process"
stop_with_gateway = true
[plugins.config.llm-server]
binary = ${JSON.stringify(join(home, 'llama-server'))}
prefer = "binary"
[aliases]
${[...names].map(name => `${JSON.stringify(name)} = "suite"`).join('\n')}
`)
put('etc/svc/slots/suite.toml', `type = "${type}"\ndefault = true\ndevice = "cpu"\nidle_timeout_s = 0\n[model]\ndefault = "suite"\n`)
put('var/lib/svc/registry/registry.toml', `[models.suite]\npath = ${JSON.stringify(SUITE_MODEL)}\ncapabilities = ["chat"]\n`)

// this process becomes the gateway, so that the program that started it stops the gateway too
process.argv = [process.execPath, SUITE_GATEWAY, 'serve', '--home', home, '--host', host, '--port', port]
await import(pathToFileURL(SUITE_GATEWAY).href)
