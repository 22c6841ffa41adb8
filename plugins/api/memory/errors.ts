import { defineErrors } from 'svc-gateway/plugin'

export const memoryApiError = defineErrors('memory', {
  invalid_bank: { status: 400, when: 'the id of a bank does not begin with a letter or digit, or has more than letters, digits, _ and -' },
  invalid_path: { status: 400, when: 'a name in the path has other characters than letters, digits and `. _ : -`, or leads elsewhere' },
  confirm_required: { status: 400, when: 'bank delete without a confirmation echoing the bank id' },
  operator_only: { status: 403, when: 'an agent asks for what is about all banks' },
  invalid_query: { status: 422, when: 'the query of a subgraph asks for what there is not' },
  node_not_found: { status: 404, when: 'the node in the middle of a subgraph is not there' }
})

export const graphError = defineErrors('config', {
  memory_graph_invalid: { status: 400, when: 'a setting of the graph is unknown or has a wrong value' },
  memory_graph_slot_invalid: { status: 422, when: 'the slot that is to extract the graph is no enabled llm slot' }
})
