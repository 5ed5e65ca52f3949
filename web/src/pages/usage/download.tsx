import { useState } from 'preact/hooks'
import { askFile, inWords, type Query } from '../../api.ts'
import { save } from '../../chart/export.ts'

export function DownloadCsv({ query, name }: { readonly query: Query; readonly name: string }) {
  const [fault, setFault] = useState<string | null>(null)
  const download = async () => {
    setFault(null)
    try {
      save(await askFile('/api/v1/usage', { ...query, format: 'csv' }), `${name}.csv`)
    } catch (error) {
      setFault(inWords(error))
    }
  }
  return (
    <button type="button" onClick={() => void download()} title={fault ?? 'The table below, with all figures'}>
      {fault === null ? 'CSV' : 'CSV failed'}
    </button>
  )
}
