"""A hub for one class: one container a student, from the image `course:student`. To start from, not to run as it is."""

c = get_config()  # noqa: F821  (JupyterHub defines it)

# The students' repository: `make students-repository TO=...`, pushed to where the hub can read it.
REPOSITORY = "https://git.example.org/school/course"
FOLDER = "course"  # in the student's home

c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
c.DockerSpawner.image = "course:student"
c.DockerSpawner.cmd = ["jupyterhub-singleuser"]
c.DockerSpawner.volumes = {"course-{username}": "/srv/student"}  # outlives the container
c.DockerSpawner.remove = True
c.DockerSpawner.notebook_dir = "/srv/student"

# Two gigabytes are what grading grants a submission, beside Python and PyTorch, which takes the threads it is told.
c.Spawner.mem_limit = "3G"
c.Spawner.cpu_limit = 2
c.Spawner.environment = {
    "PYTHONPATH": f"/srv/student/{FOLDER}",  # kernels take the helpers of the student's own copy, in every folder
    "OMP_NUM_THREADS": "2",
}

# Each start pulls what is new and opens the start page. Answers stay: see gitconfig beside this file.
OPENS = f"lab/tree/{FOLDER}/start.ipynb"
c.Spawner.default_url = f"/git-pull?repo={REPOSITORY}&branch=main&targetPath={FOLDER}&urlpath={OPENS}"

# Who may come in is yours to say: https://jupyterhub.readthedocs.io/en/stable/reference/authenticators.html
# c.JupyterHub.authenticator_class = "..."
