import t from 'tap'
import { createFakeProviderPlugin, createTestGateway } from '../../../kernel/testing/index.js'

const GOOD = 'name = "mine"\napiVersion = 1\nimage = "x"\n[surfaces.chat]\npath = "/chat"\n'

t.test('what is wrong in a descriptor is named with what was meant', async t => {
  const cases: Array<[name: string, text: string, message: RegExp]> = [
    ['an unknown placeholder', `command = ["--port", "{prt}"]\n${GOOD}`, /engines\/mine\.toml: command\.1 names the placeholder \{prt\}, which does not exist; did you mean \{port\}\?$/],
    ['one in capitals', `process = ["x", "{PORT}"]\n${GOOD}`, /process\.1 names the placeholder \{PORT\}.*did you mean \{port\}\?$/],
    ['one like nothing', `command = ["{quux}"]\n${GOOD}`, /\{quux\}, which does not exist; known are \{model_path\}, .*\{workers\}$/],
    ['a surface', GOOD.replace('surfaces.chat', 'surfaces.chats'), /surfaces\.chats is not a known key; did you mean chat\?/],
    ['a surface like nothing', GOOD.replace('surfaces.chat', 'surfaces.xyzzy'), /surfaces\.xyzzy is not a known key; known here: chat, completions, count-tokens, embeddings,/],
    ['a device', `devices = ["gpu"]\n${GOOD}`, /devices\.0 must be one of .*; got "gpu"; did you mean gpu-rocm or gpu-vulkan or gpu-cuda\?/],
    ['a runtime', `runtime = "docker"\n${GOOD}`, /runtime must be one of container, process; got "docker"/]
  ]
  for (const [name, text, message] of cases) {
    const gateway = await createTestGateway({ plugins: [createFakeProviderPlugin()], files: { 'etc/svc/engines/mine.toml': text } })
    t.match(gateway.gateway.report().find(report => report.name === 'mine'), { state: 'failed', code: 'plugin.manifest_invalid', message }, name)
    await gateway.close()
  }
  const fine = await createTestGateway({
    files: { 'etc/svc/engines/mine.toml': `command = ["--json", "{\\"a\\":1}", "{model_path}", "--port", "{port}"]\n${GOOD}` }
  })
  t.match(fine.gateway.report().find(report => report.name === 'mine'), { state: 'active' }, 'JSON is no placeholder')
  await fine.close()
})
