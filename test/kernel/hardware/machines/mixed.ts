import { discreteAmd } from './discrete-amd.js'
import { nvidia } from './nvidia.js'
import { card, type Recording, type Tree } from './recording.js'
import { strixHalo } from './strix-halo.js'

/** Numbers of a card's two nodes. */
interface Nodes { readonly card: number, readonly render: number }

/** Files of one recorded card, moved to another number, so that machines can be put together. */
function moved (tree: Tree, from: Nodes, to: Nodes): Tree {
  const ofCard = new RegExp(`/(card${from.card})(-DP-1)?(/|$)`)
  const ofRender = new RegExp(`/renderD${from.render}(/|$)`)
  const own = Object.entries(tree).filter(([path]) => ofCard.test(path) || ofRender.test(path))
  return Object.fromEntries(own.map(([path, text]) => [
    path.replace(ofCard, (_, _name: string, port = '', end: string) => `/card${to.card}${port}${end}`).replace(ofRender, `/renderD${to.render}$1`), text
  ]))
}

function without (tree: Tree, ...cards: readonly Nodes[]): Tree {
  const gone = cards.flatMap(each => [new RegExp(`/card${each.card}(-DP-1)?(/|$)`), new RegExp(`/renderD${each.render}(/|$)`)])
  return Object.fromEntries(Object.entries(tree).filter(([path]) => !gone.some(pattern => pattern.test(path))))
}

const smi = nvidia.nvidiaSmi!

function geforce (number: number): Tree {
  const driver = Object.entries(nvidia.tree).filter(([path]) => /^(proc\/driver\/nvidia|dev\/nvidia)/.test(path))
  return { ...card({ card: number, render: 129, slot: '0000:01:00.0', driver: 'nvidia', ids: '10de:2684' }), ...Object.fromEntries(driver) }
}

/** A GeForce RTX 4090 in a desktop whose Ryzen has graphics: 512 MB carved out, and a compute node all the same. */
export const nvidiaBesideRyzen: Recording = {
  tree: {
    ...without(discreteAmd.tree, { card: 0, render: 129 }, { card: 1, render: 128 }),
    ...geforce(1),
    ...moved(discreteAmd.tree, { card: 0, render: 129 }, { card: 0, render: 128 })
  },
  nvidiaSmi: smi
}

/** Strix Halo with a GeForce behind OCuLink, which comes first on the bus. */
export const haloWithCard: Recording = { tree: { ...strixHalo.tree, ...geforce(2) }, nvidiaSmi: smi }

/** Strix Halo with a Radeon RX 7900 XTX behind OCuLink. */
export const haloWithRadeon: Recording = {
  tree: { ...strixHalo.tree, ...moved(discreteAmd.tree, { card: 1, render: 128 }, { card: 2, render: 129 }) }
}

/** A GeForce with 16 GB and a Radeon with 24 GB in one machine. */
export const twoMakers: Recording = {
  tree: {
    ...without(nvidia.tree, { card: 0, render: 128 }),
    ...moved(discreteAmd.tree, { card: 1, render: 128 }, { card: 2, render: 130 }),
    'dev/kfd': ''
  },
  nvidiaSmi: '00000000:01:00.0, 16376, 1204, 4, 41, 18.90, 210, NVIDIA GeForce RTX 4080 SUPER\n'
}
