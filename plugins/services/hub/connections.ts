import { Agent, EnvHttpProxyAgent, type Dispatcher } from 'undici'

/**
 * Connections to hosts outside, by way of the proxy that the environment names, if it names one. To be made at the first use, and
 * closed by its owner.
 * @param variable a variable of the environment by its name; names of proxies are looked for in either case
 */
export function outwardConnections (variable: (name: string) => string | undefined, connectMs: number): Dispatcher {
  const options = { connect: { timeout: connectMs } }
  const either = (name: string): string | undefined => variable(name) || variable(name.toUpperCase()) || undefined
  const [httpsProxy, httpProxy, noProxy] = [either('https_proxy'), either('http_proxy'), either('no_proxy')]
  if (httpsProxy === undefined && httpProxy === undefined) return new Agent(options)
  return new EnvHttpProxyAgent({
    ...options,
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    ...(httpProxy === undefined ? {} : { httpProxy }),
    ...(noProxy === undefined ? {} : { noProxy })
  })
}
