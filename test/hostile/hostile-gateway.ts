import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../kernel/testing/index.js'
import builtins from '../../plugins/index.js'

/** The gateway as it ships, without a way to the network, for `hostile.ts`: tells what it costs when it is asked. */
const gateway = await createTestGateway({
  builtins,
  plugins: [createFakeProviderPlugin()],
  runtime: new FakeEngineRuntime(),
  checkAnswers: false,
  // orders to bring programs from registries are refused
  pluginConfig: { 'api-services': { downloads: false, systemctl: '/nonexistent' } },
  env: { SVC_AVAHI_SERVICES_DIR: '/nonexistent', PATH: process.env.PATH ?? '', HF_ENDPOINT: 'http://127.0.0.1:9' },
  files: { 'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
})
process.on('message', () => {
  const failures = gateway.logs.filter(({ level }) => level === 'error').slice(-5).map(({ message, fields }) => `${message} ${String((fields.err as Error | undefined)?.stack ?? '')}`)
  process.send!({ cpu: process.cpuUsage(), rss: process.memoryUsage().rss, sockets: process.getActiveResourcesInfo().filter(name => name === 'TCPSocketWrap').length, failures })
})
process.on('disconnect', () => { void gateway.close().then(() => process.exit(0)) })
process.send!({ baseUrl: gateway.baseUrl, home: gateway.home })
