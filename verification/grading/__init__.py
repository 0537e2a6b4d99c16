"""The grader of the course: judges what students hand in for the exercises of labs/.

    ./agglab grade labs/03-bitmap bitmap.p4

`lab` reads an exercise, `submission` what is handed in, `jail` and `sandbox` are where it is
judged, `packets`, `runs`, `python_cases` and `mutants` judge one case each, `grade` adds up the
points, and `text` and `formats` write the result. `class_command` grades a folder of submissions,
`course` finds the exercises, and `labs_command` lists, starts and exports them.
"""
