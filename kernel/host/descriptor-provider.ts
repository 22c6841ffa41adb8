import {
  definePlugin, defineProvider, type AnyPlugin, type EngineProvider, type LaunchSpecInput, type ProviderDescriptor
} from '../contract/index.js'

/** A provider made from data alone: templates are filled in, nothing else runs (DESIGN 3). */
export function providerOfDescriptor (descriptor: ProviderDescriptor): EngineProvider {
  const { process: program } = descriptor
  return defineProvider({
    name: descriptor.name,
    title: descriptor.title === '' ? descriptor.name : descriptor.title,
    family: descriptor.family ?? descriptor.name,
    devices: descriptor.devices,
    slotTypes: descriptor.slot_types,
    cli: true,
    needsModel: descriptor.needs_model,
    surfaces: descriptor.surfaces as EngineProvider['surfaces'],
    health: descriptor.health,
    exclusivity: descriptor.exclusivity,
    flags: { managed: managedOf([...descriptor.command, ...program?.slice(1) ?? []]) },
    ...(descriptor.concurrency === 'unlimited' ? { concurrency: () => null } : {}),
    ...(descriptor.image === undefined ? {} : { image: descriptor.image }),
    containerSpec: input => ({
      ...(descriptor.entrypoint === undefined ? {} : { entrypoint: descriptor.entrypoint }),
      command: [...fillIn(descriptor.command, input), ...input.argv],
      env: descriptor.env
    }),
    ...(program === undefined
      ? {}
      : {
          processSpec: (input: LaunchSpecInput) => [{
            command: program[0]!,
            args: [...fillIn(program.slice(1), input), ...input.argv],
            env: descriptor.env,
            label: program[0]!
          }]
        })
  })
}

export function pluginOfDescriptor (descriptor: ProviderDescriptor): AnyPlugin {
  return definePlugin({
    name: descriptor.name,
    kind: 'provider',
    apiVersion: descriptor.apiVersion,
    register: ctx => ctx.addProvider(providerOfDescriptor(descriptor))
  })
}

/** Flags that the template fills in: `--port {port}`, `--model={model_path}`. They are the gateway's. Pure. */
export function managedOf (tokens: readonly string[]): string[] {
  const flags = tokens.flatMap((token, i) => {
    if (!/\{[a-z_]+\}/.test(token)) return []
    const flag = token.startsWith('-') ? token.split('=', 1)[0]! : tokens[i - 1] ?? ''
    return flag.startsWith('-') ? [flag.replace(/^-+/, '').replaceAll('_', '-')] : []
  })
  return [...new Set(flags)]
}

/**
 * Template tokens with their placeholders filled in. A token whose placeholder has no value is left out, and so
 * is the flag before it.
 */
export function fillIn (tokens: readonly string[], input: LaunchSpecInput): string[] {
  const values: Record<string, string | null> = {
    model_path: input.model?.path ?? null,
    model_name: input.model?.id ?? input.slot.name,
    port: String(input.port),
    host: input.bindHost,
    context_size: input.contextSize === null ? null : String(input.contextSize),
    mmproj_path: input.mmprojPath,
    state_dir: input.stateDir,
    workers: String(input.slot.workers)
  }
  const filled: string[] = []
  for (const token of tokens) {
    let known = true
    const text = token.replace(/\{([a-z_]+)\}/g, (whole, key: string) => {
      if (!Object.hasOwn(values, key)) return whole
      if (values[key] === null) known = false
      return values[key] ?? ''
    })
    if (known) filled.push(text)
    else if (filled.at(-1)?.startsWith('-') === true && !token.startsWith('-')) filled.pop()
  }
  return filled
}
