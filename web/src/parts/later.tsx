/** A part of a page that is loaded when it is first shown. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'

export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let known: ComponentType<Props> | null = null
  return (props) => {
    const [Part, setPart] = useState<ComponentType<Props> | null>(() => known)
    useEffect(() => {
      if (known !== null) return
      // Without it the rest of the page is there all the same.
      load().then(
        (loaded) => {
          known = loaded
          setPart(() => loaded)
        },
        () => undefined,
      )
    }, [])
    return Part === null ? null : <Part {...props} />
  }
}
