import {
  definePlugin, defineProvider, descriptorPlaceholders, type AnyPlugin, type EngineProvider,
  type EngineRequirements, type LaunchSpecInput, type ProviderDescriptor
} from '../../contract/index.js'
import type { Problem } from '../../config/check/shape-check.js'
import { suggest } from '../../contract/text/suggest.js'

/** A provider made from data alone: templates are filled in, nothing else runs. */
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
    aliases: descriptor.aliases,
    defaultFor: descriptor.default_for.map(({ type, device }) => ({ type, ...(device === undefined ? {} : { device }) })),
    reservedPorts: descriptor.reserved_ports,
    ...(descriptor.vulkan_variable === undefined ? {} : { vulkanVariable: descriptor.vulkan_variable }),
    profiles: descriptor.profiles,
    surfaces: descriptor.surfaces as EngineProvider['surfaces'],
    health: descriptor.health as EngineProvider['health'],
    abilities: () => descriptor.abilities,
    exclusivity: descriptor.exclusivity,
    ...(descriptor.ports.length === 0 ? {} : { ports: descriptor.ports }),
    flags: { managed: managedOf([...descriptor.command, ...program?.slice(1) ?? []]) },
    ...(descriptor.concurrency === 'unlimited' ? { concurrency: () => null } : {}),
    ...(descriptor.image === undefined ? {} : { image: descriptor.image }),
    ...runtimeOf(descriptor),
    requires: requirementsOf(descriptor),
    ...(descriptor.about === undefined ? {} : { about: descriptor.about }),
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

function requirementsOf ({ requires: { memory_mb: memoryMb, drivers, features } }: ProviderDescriptor): EngineRequirements {
  return { memoryMb, drivers, features }
}

/** What says nothing of a container can only run as a process. */
function runtimeOf ({ runtime, image, command }: ProviderDescriptor): Pick<EngineProvider, 'runtime'> {
  if (runtime !== undefined) return { runtime }
  return image === undefined && command.length === 0 ? { runtime: 'process' } : {}
}

export function pluginOfDescriptor (descriptor: ProviderDescriptor): AnyPlugin {
  return definePlugin({
    name: descriptor.name,
    kind: 'provider',
    apiVersion: descriptor.apiVersion,
    register: ctx => ctx.addProvider(providerOfDescriptor(descriptor))
  })
}

/** What looks like a placeholder; JSON does not. */
const PLACEHOLDER = /\{([A-Za-z][\w-]*(?:\.[\w-]+)?)\}/g

/** Placeholders that do not exist, each with where it stands: the engine would be given the braces. Pure. */
export function unknownPlaceholders ({ command, process: program = [], ports }: ProviderDescriptor): readonly Problem[] {
  const known: readonly string[] = [...descriptorPlaceholders, ...ports.map(name => `port.${name}`)]
  return Object.entries({ command, process: program }).flatMap(([list, tokens]) => tokens.flatMap((token, i) =>
    [...token.matchAll(PLACEHOLDER)].flatMap(([whole, key = '']) => {
      if (known.includes(key)) return []
      const meant = suggest(key, known)
      const help = meant === null ? `known are ${known.map(name => `{${name}}`).join(', ')}` : `did you mean {${meant}}?`
      return [{ path: [list, String(i)], message: `names the placeholder ${whole}, which does not exist; ${help}`, unknown: false }]
    })))
}

/** Flags that the template fills in: `--port {port}`, `--model={model_path}`. They are the gateway's. Pure. */
export function managedOf (tokens: readonly string[]): string[] {
  const flags = tokens.flatMap((token, i) => {
    if (!/\{[a-z_]+(?:\.[\w-]+)?\}/.test(token)) return []
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
    workers: String(input.slot.workers),
    ...Object.fromEntries(Object.entries(input.ports).map(([name, port]) => [`port.${name}`, String(port)]))
  }
  const filled: string[] = []
  for (const token of tokens) {
    let known = true
    const text = token.replace(PLACEHOLDER, (whole, key: string) => {
      if (!Object.hasOwn(values, key)) return whole
      if (values[key] === null) known = false
      return values[key] ?? ''
    })
    if (known) filled.push(text)
    else if (filled.at(-1)?.startsWith('-') === true && !token.startsWith('-')) filled.pop()
  }
  return filled
}
